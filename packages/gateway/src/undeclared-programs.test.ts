import { toTrainingSamples } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { episodeOf } from './testing/episode-of.ts'
import { openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const byPrompt = sessionRequest({ agents: [{ name: 'agent', trainable: true, randomKey: 'prompt' }] })
const asking = (content: string) => [{ role: 'user' as const, content }]

test('a call of a program without places draws by what it asks, whenever it arrives', async () => {
  const keysInOrder = async (questions: readonly string[]) => {
    await using started = await startGateway({ say: () => 'Yes.' })
    const session = started.gateway.open(byPrompt)
    for (const question of questions) await post(session.endpoint('agent'), { messages: asking(question) })
    await session.close()
    return started.engine.requests.map(({ random }) => random)
  }
  const [a, b, again] = await keysInOrder(['a', 'b', 'a'])
  expect(await keysInOrder(['b', 'a', 'a'])).toEqual([b, a, again])
  expect(new Set([a!.turn, b!.turn, again!.turn]).size).toBe(3)
  expect(a).toMatchObject({ seed: b!.seed, task: 'task-1', sample: 0 })
})

test('a call that is repeated after a time-out draws anew, and its answer is the one that counts', async () => {
  await using started = await startGateway({ say: [{ text: 'a long answer that takes its time', pieceDelayMs: 5 }, 'Short.'] })
  const { gateway, engine } = started
  const session = gateway.open(byPrompt)
  const timeout = new AbortController()
  const call = post(session.endpoint('agent'), { messages: asking('Go on.') }, { signal: timeout.signal })
  await until(() => engine.sampledTokens() >= 3)
  timeout.abort()
  await expect(call).rejects.toThrow()
  await until(() => engine.aborted() === 1 && gateway.counts().inFlight === 0)
  await openaiClient(session.endpoint('agent')).chat.completions.create({ model: 'any', messages: asking('Go on.') })
  const trajectories = await session.close()
  expect(trajectories[0]!.turns.map(({ delivered }) => delivered)).toEqual(['abandoned', 'delivered'])
  const [first, repeated] = engine.requests
  expect(repeated!.random.turn).toBe(first!.random.turn + 1)
})

test('three conversations with equal prompts, answered at once, are three samples', async () => {
  // Each round of calls is answered once all three have arrived.
  await using started = await startGateway({
    async say(_, call) {
      await until(() => started.engine.requests.length >= (call < 3 ? 3 : 6))
      return 'The same.'
    },
  })
  const session = started.gateway.open(byPrompt)
  const again = [...asking('Say.'), { role: 'assistant' as const, content: 'The same.' }, ...asking('Again.')]
  for (const messages of [asking('Say.'), again]) await Promise.all([1, 2, 3].map(() => post(session.endpoint('agent'), { messages })))
  const { samples } = toTrainingSamples(episodeOf(await session.close()))
  expect(samples.map(({ provenance }) => provenance.turns.length)).toEqual([2, 2, 2])
  expect(new Set(samples.flatMap(({ provenance }) => provenance.turns)).size).toBe(6)
})

test('three conversations that leave a pause together are three samples', async () => {
  // Each round of calls is answered once all three have arrived.
  await using started = await startGateway({
    async say(_, call) {
      await until(() => started.engine.requests.length >= (call < 3 ? 3 : 6))
      return 'The same.'
    },
  })
  const session = started.gateway.open(byPrompt)
  const again = [...asking('Say.'), { role: 'assistant' as const, content: 'The same.' }, ...asking('Again.')]
  await Promise.all([1, 2, 3].map(() => post(session.endpoint('agent'), { messages: asking('Say.') })))
  await started.gateway.pause({ drain: true })
  const second = Promise.all([1, 2, 3].map(() => post(session.endpoint('agent'), { messages: again })))
  await until(() => started.gateway.counts().calls === 6)
  started.gateway.resume()
  await second
  const { samples } = toTrainingSamples(episodeOf(await session.close()))
  expect(samples.map(({ provenance }) => provenance.turns.length)).toEqual([2, 2, 2])
  expect(new Set(samples.flatMap(({ provenance }) => provenance.turns)).size).toBe(6)
})

test.each<Record<string, string>>([{}, { '*': 'tiny' }])(
  'agents that share an address are told apart by the model that each asks for (aliases %j)',
  async (aliases) => {
    await using started = await startGateway({ say: () => 'Yes.', aliases })
    const agents = ['triage', 'refunds'].map((name) => ({ name, trainable: true, randomKey: 'prompt' as const }))
    const session = started.gateway.open(sessionRequest({ agents }))
    const triage = session.endpoint('triage')
    const ask = async (baseUrl: string, model: string) =>
      expect((await post({ ...triage, baseUrl }, { model, messages: asking('Money?') })).status).toBe(200)
    await ask(triage.baseUrl, 'triage')
    await ask(triage.baseUrl, 'refunds')
    await ask(triage.baseUrl.replace(/\/v1$/, '/~0.0/v1'), 'refunds')
    await ask(triage.baseUrl, triage.model)
    const trajectories = await session.close()
    expect(trajectories.map(({ id, agent, turns }) => [id, agent, turns.length])).toEqual([
      ['triage', 'triage', 2],
      ['refunds', 'refunds', 1],
      ['refunds:0.0', 'refunds', 1],
    ])
    expect(trajectories.flatMap(({ turns }) => turns.map(({ model }) => model))).toEqual(Array(4).fill(undefined))
    // Three of them ask the same for the first time, and draw apart.
    expect(new Set(started.engine.requests.map(({ random }) => JSON.stringify(random))).size).toBe(4)
  },
)

test('a model that has the name of an agent is the model', async () => {
  await using started = await startGateway({ say: () => 'Yes.' })
  const agents = ['triage', 'tiny'].map((name) => ({ name, trainable: true, randomKey: 'prompt' as const }))
  const session = started.gateway.open(sessionRequest({ agents }))
  await post(session.endpoint('triage'), { model: 'tiny', messages: asking('Money?') })
  expect((await session.close()).map(({ turns }) => turns.length)).toEqual([1, 0])
})
