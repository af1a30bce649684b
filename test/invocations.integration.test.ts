import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type AgentSource, HandoffSwarm, LoopableAgent, parallel, Swarm, toAgentProgram, tool } from '@aworld-train/agent'
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
}, 120_000)

/** An agent whose system prompt is its name in capitals. */
const named = (name: string, agents: readonly (Agent | Swarm)[] = []) => new Agent({ name, systemPrompt: name.toUpperCase(), agents })

/** Asks the agents on its right once, some of them twice with equal questions, then answers; an agent without tools answers. */
const askThen = (questions: Readonly<Record<string, readonly string[]>>) => (prompt: string, key: RandomKey) => {
  const [, name = ''] = /<\|im_start\|>system\n(\w+)/.exec(prompt) ?? []
  const others = questions[name.toLowerCase()]
  if (!others || prompt.includes('<|im_start|>tool') || prompt.includes('tool_response')) return `${name} ${drawn(key)}`
  return others.map((other) => call(other, { content: 'the same' })).join('\n')
}

test.each([
  [
    "the seeds' swarm, each member asking one helper three times at once",
    () => {
      const helper = named('helper')
      const [one, two, three] = [named('one', [helper]), named('two', [helper]), named('three')] as const
      return new Swarm([[one, three] as const, [two, three] as const], { rootAgent: [one, two] })
    },
    { one: ['helper', 'helper', 'helper'], two: ['helper', 'helper', 'helper'] },
    ['one', 'helper:one.0.0', 'helper:one.0.1', 'helper:one.0.2', 'helper:two.0.0', 'helper:two.0.1', 'helper:two.0.2', 'two', 'three'],
    'THREE',
  ],
  [
    'a handoff in a circle',
    () => {
      const [one, two] = [named('one'), named('two')] as const
      return new HandoffSwarm([one, two], [two, one], { endlessThreshold: 2 })
    },
    { one: ['two', 'two'], two: ['one'] },
    null,
    'ONE',
  ],
  [
    'a loop over two agents side by side',
    () => {
      const critic = new LoopableAgent({ name: 'critic', systemPrompt: 'CRITIC', maxRunTimes: 3, loopPoint: 'plan' })
      return new Swarm(named('plan'), parallel(named('one'), named('two')), critic, named('end'))
    },
    {},
    ['plan', 'plan:2', 'plan:3', 'one', 'one:2', 'one:3', 'two', 'two:2', 'two:3', 'critic', 'critic:2', 'critic:3', 'end'],
    'END',
  ],
  [
    'a swarm as a tool, asked twice at once',
    () => {
      const one = named('one')
      return named('lead', [new Swarm(one, named('two'), one, { name: 'steps' })])
    },
    { lead: ['steps', 'steps'] },
    ['lead', 'one:lead.0.0', 'one:lead.0.0-2', 'one:lead.0.1', 'one:lead.0.1-2', 'two:lead.0.0', 'two:lead.0.1'],
    'LEAD',
  ],
])(
  '%s is one episode for one seed',
  async (_, build, questions, ids, answer) => {
    const episodes: Episode[] = []
    for (let run = 0; run < 5; run++) episodes.push(await rollOut(build(), askThen(questions)))
    const [episode] = episodes as [Episode]
    expect(episode).toMatchObject({ stopReason: 'completed', answer: expect.stringMatching(new RegExp(`^${answer} `)), reward: 1 })
    const worked = episode.trajectories.filter(({ turns }) => turns.length > 0)
    if (ids) expect(worked.map(({ id }) => id).sort()).toEqual(ids.toSorted())
    expect(new Set(episodes.map(timeless)).size).toBe(1)
    expect(new Set(episodes.map(rowsOf)).size).toBe(1)
    const { samples, sampled, untrained } = toTrainingSamples(episode)
    const trained = samples.reduce((sum, { lossMask }) => sum + lossMask.reduce((ones, mask) => ones + mask, 0), 0)
    expect([trained, untrained]).toEqual([sampled, {}])
    expect(new Set(samples.map(({ trajectory }) => trajectory))).toEqual(new Set(worked.map(({ id }) => id)))
  },
  60_000,
)

test('a member that overflows stops the others where they stand, so that the episode is untrained', async () => {
  const look = tool({ name: 'look', parameters: z.object({}), execute: () => 'data' })
  const [one, other, writer] = ['one', 'other', 'writer'].map((name) => new Agent({ name, systemPrompt: name, tools: [look] }))
  const swarm = new Swarm(parallel(one!, other!), writer!)
  const stopped = await rollOut(swarm, () => call('look', {}), { maxResponseTokens: 60 })
  expect(stopped).toMatchObject({ stopReason: 'context-overflow', limitedSideBySide: true })
  expect(toTrainingSamples(stopped).samples).toEqual([])
}, 60_000)
