import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { type AgentProgram, type RolloutRequest, toTrainingSamples } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway, type FrozenRoute } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { expect, test } from 'vitest'

const never = new AbortController().signal

/** Asks the policy, then has the judge look at it, as often as it likes. */
const judged = (judgements: number): AgentProgram => ({
  agents: [
    { name: 'solver', trainable: true },
    { name: 'critic', trainable: false, model: 'judge' },
  ],
  async run(_, context) {
    const ask = async (agent: string, content: string) => {
      const { baseUrl, model } = context.policy(agent)
      const body = JSON.stringify({ model, messages: [{ role: 'user', content }] })
      const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body, signal: context.signal })
      if (!response.ok) throw new Error(`${response.status}`)
      return ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
    }
    const answer = await ask('solver', 'Atomic number of gold?')
    let verdict = ''
    for (let count = 0; count < judgements; count++) verdict = await ask('critic', `Is ${answer} right?`)
    return { answer: verdict, messages: [] }
  },
})

/** A third party that gives each call another answer. */
async function startJudge() {
  let calls = 0
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const message = { role: 'assistant', content: `verdict ${calls++}` }
      const usage = { prompt_tokens: 1000, completion_tokens: 100 }
      response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls: () => calls,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

interface RunOnceOptions {
  readonly directory: string
  readonly name: string
  readonly judge: Omit<FrozenRoute, 'kind' | 'dialect' | 'model' | 'price'>
  readonly judgements?: number
  readonly limits?: RolloutRequest['limits']
}

/** Four rollouts, one at a time, with every real part; the run is read back from its store. */
async function runOnce({ directory, name, judge, judgements = 2, limits = {} }: RunOnceOptions) {
  const model = await writeTinyModel({ directory: join(directory, `model-${name}`), template: chatMlTemplate })
  const chat = await loadChatModel({ directory: model.directory, stopTokenIds: model.stopTokenIds })
  const engine = scriptedEngine({ model, script: () => ({ tokenIds: [...chat.encode('79'), ...model.stopTokenIds] }) })
  const price = { input: 2, output: 10 }
  const gateway = await createGateway({
    models: {
      policy: { kind: 'token', engine, chat },
      judge: { ...judge, kind: 'frozen', dialect: 'chat-completions', model: 'large', price },
    },
    seed: 1,
  })
  const environment = createEnvironment({ baseDirectory: directory })
  const store = await openRunStore({ path: join(directory, name) })
  const runner = createRolloutRunner({
    program: judged(judgements),
    gateway,
    environment,
    reward: { name: 'one', score: async () => ({ reward: 1, scores: {} }), close: async () => {} },
    store,
    answerKey: (taskId) => ({ version: 1, taskId, groundTruth: '79' }),
    concurrency: 1,
  })
  const requests = Array.from(
    { length: 4 },
    (_, sample): RolloutRequest => ({
      version: 1,
      key: `${name}/${sample}`,
      task: { version: 1, id: 'gold', hash: 'h', input: 'Gold?', data: {}, dataSource: 'test', extraInfo: {} },
      group: 'gold',
      sample,
      split: 'train',
      policy: 'policy',
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 },
      limits,
    }),
  )
  const episodes = await runner.runAll(requests, never)
  const recorded = store.counts()
  for (const part of [runner, store, environment, gateway, engine]) await part.close()
  return { episodes, recorded }
}

test('a judge is recorded, paid and never trained, and a run is repeated without it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'frozen-model-'))
  try {
    const party = await startJudge()
    const path = join(directory, 'answers.jsonl')
    const judge = { baseUrl: party.baseUrl, apiKey: 'sk-judge' }
    const first = await runOnce({ directory, name: 'first', judge: { ...judge, cassette: { path, mode: 'record' } } })
    expect(party.calls()).toBe(8)
    await party.close()
    const again = await runOnce({ directory, name: 'again', judge: { ...judge, cassette: { path, mode: 'replay' } } })

    for (const { episodes, recorded } of [first, again]) {
      expect(episodes.map(({ stopReason, answer }) => [stopReason, answer])).toEqual(
        [1, 3, 5, 7].map((verdict) => ['completed', `verdict ${verdict}`]),
      )
      expect(recorded.turns).toBe(12)
      for (const episode of episodes) {
        const [solver, critic] = episode.trajectories
        expect(solver).toMatchObject({ agent: 'solver', trainable: true, policy: 'policy' })
        expect(critic).toMatchObject({ agent: 'critic', trainable: false, policy: 'judge' })
        expect(critic!.turns).toMatchObject([
          { model: 'judge', cost: 0.003, capture: { tokens: 'none' }, delivered: 'delivered' },
          { model: 'judge', cost: 0.003 },
        ])
        const { samples, sampled } = toTrainingSamples(episode)
        expect(samples.map(({ agent }) => agent)).toEqual(['solver'])
        expect(sampled).toBe(solver!.turns[0]!.completionTokenIds.length)
      }
    }
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a rollout that spends more on a judge than it may ends at that limit', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'frozen-model-'))
  const party = await startJudge()
  try {
    const { episodes } = await runOnce({
      directory,
      name: 'dear',
      judge: { baseUrl: party.baseUrl },
      judgements: 9,
      limits: { maxCost: 0.007 },
    })
    expect(episodes.map(({ stopReason, error }) => [stopReason, error?.code])).toEqual(Array(4).fill(['cost-limit', 'AGENT_LIMIT']))
    expect(party.calls()).toBe(12)
  } finally {
    await party.close()
    await rm(directory, { recursive: true })
  }
})
