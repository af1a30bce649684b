import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type AgentSource, toAgentProgram, tool } from '@aworld-train/agent'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { type Episode, type RandomKey, type RolloutRequest, toTrainingSamples } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore, readRun } from '@aworld-train/store'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

const call = (name: string, args: object) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`

/** A number that a call's random key decides, as a sampled token would be. */
function drawn({ task, sample, turn }: RandomKey): number {
  let hash = 7
  for (const letter of `${task}|${sample}|${turn}`) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) | 0
  return (hash >>> 0) % 1000
}

/** Runs `source` once over every real part, with calls of the model delayed at random. Resolves to the episode as the run directory has it. */
async function rollOut(source: AgentSource, say: (prompt: string, key: RandomKey) => string, limits: RolloutRequest['limits'] = {}) {
  await using stack = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'invocations-'))
  stack.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 3 }))
  const close = (each: { close(): Promise<void> }) => each.close()
  const program = stack.adopt(toAgentProgram(source), close)
  const model = await writeTinyModel({ directory, template: chatMlTemplate, contextLength: 1 << 14 })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const engine = scriptedEngine({
    model,
    async script({ promptTokenIds, random }) {
      await sleep(Math.random() * 10)
      return {
        tokenIds: [...chat.encode(say(chat.decode([...promptTokenIds], { skipSpecialTokens: false }), random)), ...model.stopTokenIds],
      }
    },
  })
  stack.adopt(engine, close)
  const gateway = stack.adopt(
    await createGateway({ models: { policy: { kind: 'token', engine, chat } }, aliases: { '*': 'policy' }, seed: 1 }),
    close,
  )
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), close)
  const path = join(directory, 'run')
  const store = stack.adopt(await openRunStore({ path }), close)
  const runner = createRolloutRunner({
    program,
    gateway,
    environment,
    reward: { name: 'one', score: async () => ({ reward: 1, scores: {} }), close: async () => {} },
    store,
    answerKey: (taskId) => ({ version: 1, taskId, groundTruth: null }),
    concurrency: 1,
  })
  stack.adopt(runner, close)
  const task = { version: 1 as const, id: 'gold', hash: 'h', input: 'Gold?', data: {}, dataSource: 'test', extraInfo: {} }
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 2048, stop: [], seed: 0 }
  const place = { group: 'gold', sample: 0, split: 'train', policy: 'policy' }
  await runner.run({ version: 1, key: 'gold/0', task, ...place, sampling, limits }, new AbortController().signal)
  const reader = readRun(path)
  try {
    return reader.episode('gold/0')!
  } finally {
    reader.close()
  }
}

const ofTime = new Set(['timing', 'firstTokenAt', 'usage'])

/** An episode without times, and without what a cache of prompts had, which depends on them. */
const timeless = (episode: Episode) =>
  JSON.stringify(episode, (key, value) => (ofTime.has(key) ? undefined : ArrayBuffer.isView(value) ? [...(value as Int32Array)] : value))
const rowsOf = (episode: Episode) =>
  JSON.stringify(
    toTrainingSamples(episode).samples.map(({ trajectory, tokenIds, provenance }) => [trajectory, [...tokenIds], provenance.turns]),
  )

/** A lead whose three questions to one reader, two of them equal, are asked at once; the reader looks things up for a while. */
function leadAndReader() {
  const look = tool({
    name: 'look',
    parameters: z.object({ q: z.string() }),
    async execute({ q }) {
      await sleep(Math.random() * 20)
      return `data-${q}`
    },
  })
  const reader = new Agent({ name: 'reader', systemPrompt: 'READER', tools: [look] })
  return new Agent({ name: 'the lead', systemPrompt: 'LEAD', agents: [reader] })
}

function say(prompt: string, key: RandomKey): string {
  if (!prompt.includes('LEAD')) return prompt.includes('data-') ? `found ${drawn(key)}` : call('look', { q: `q${drawn(key)}` })
  if (prompt.includes('tool_response') || prompt.includes('<|im_start|>tool')) return `done ${drawn(key)}`
  return ['one', 'one', 'two'].map((content) => call('reader', { content })).join('\n')
}

test('agents that one agent asks at once are invocations of their own, and the same seed gives the same episode', async () => {
  const episodes: Episode[] = []
  for (let run = 0; run < 12; run++) episodes.push(await rollOut(leadAndReader(), say))
  const [episode] = episodes
  expect(episode).toMatchObject({ stopReason: 'completed', answer: expect.stringMatching(/^done/), reward: 1 })
  expect(episode!.trajectories.map(({ id, startedBy, turns }) => [id, startedBy, turns.map(({ parent }) => parent)])).toEqual([
    ['the lead', [], [null, 0]],
    ['reader', [], []],
    ...[0, 1, 2].map((place) => [
      `reader:the lead.0.${place}`,
      [{ trajectory: 'the lead', turn: 0, toolCall: episode!.trajectories[0]!.turns[0]!.toolCalls[place]!.id }],
      [null, 0],
    ]),
  ])
  const found = episode!.trajectories.slice(2).map(({ turns }) => turns.at(-1)!.message.content)
  expect(new Set(found).size).toBe(3)
  expect(episode!.toolCalls.map(({ trajectory, turn, name }) => [trajectory, turn, name])).toEqual([
    ...[0, 1, 2].map(() => ['the lead', 0, 'reader']),
    ...[0, 1, 2].map((place) => [`reader:the lead.0.${place}`, 0, 'look']),
  ])
  expect(new Set(episodes.map(timeless)).size).toBe(1)
  expect(new Set(episodes.map(rowsOf)).size).toBe(1)
  const { samples, sampled, untrained } = toTrainingSamples(episode!)
  expect(samples.map(({ agent, trajectory }) => [agent, trajectory])).toEqual([
    ['the lead', 'the lead'],
    ...[0, 1, 2].map((place) => ['reader', `reader:the lead.0.${place}`]),
  ])
  const trained = samples.reduce((sum, { lossMask }) => sum + lossMask.reduce((ones, mask) => ones + mask, 0), 0)
  expect([trained, untrained]).toEqual([sampled, {}])
}, 60_000)

test('a limit of the whole rollout that invocations meet side by side leaves the episode untrained', async () => {
  const cut = await rollOut(leadAndReader(), say, { maxTurns: 4 })
  expect(cut).toMatchObject({ stopReason: 'turn-limit', limitedSideBySide: true })
  const { samples, untrained, sampled } = toTrainingSamples(cut)
  expect([samples, untrained]).toEqual([[], { 'truncated-episode': sampled }])

  const alone = new Agent({ name: 'agent', tools: [tool({ name: 'look', parameters: z.object({}), execute: () => 'data' })] })
  const ended = await rollOut(alone, () => call('look', {}), { maxTurns: 4 })
  expect(ended).toMatchObject({ stopReason: 'turn-limit' })
  expect(ended.limitedSideBySide).toBeUndefined()
  expect(toTrainingSamples(ended).samples).toHaveLength(1)
}, 60_000)
