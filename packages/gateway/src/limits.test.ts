import { TrainError } from '@aworld-train/core'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { openaiClient, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Go on.' }]

test('calls beyond maxTurns are refused, over all agents, in a way clients do not repeat', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const agents = ['one', 'two'].map((name) => ({ name, trainable: true }))
  const session = started.gateway.open(sessionRequest({ maxTurns: 3, agents }))
  for (const agent of ['one', 'two', 'one']) expect((await post(session.endpoint(agent), { messages })).status).toBe(200)
  expect(session.failure()).toBeNull()
  const { baseUrl, apiKey } = session.endpoint('two')
  const eager = new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 3 })
  await expect(eager.chat.completions.create({ model: 'any', messages })).rejects.toMatchObject({ status: 400, code: 'limit_reached' })
  expect(started.gateway.counts().calls).toBe(4)
  expect(session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'turn-limit' } })
})

test('parallel calls do not pass maxTurns', async () => {
  await using started = await startGateway({ say: () => ({ text: 'Fine.', pieceDelayMs: 1 }) })
  const session = started.gateway.open(sessionRequest({ maxTurns: 3 }))
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(session.endpoint('agent'), { messages })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 400, 400, 400, 400, 400])
  expect((await session.close())[0]!.turns.length).toBe(3)
})

test('the call that would pass maxSessionTokens is cut, later ones are refused', async () => {
  // The answer comes in one piece: an engine that was not told of the budget would exceed it.
  await using started = await startGateway({ say: () => ({ text: 'abcdef', pieceSize: 100 }) })
  const session = started.gateway.open(sessionRequest({ maxSessionTokens: 10 }))
  const client = openaiClient(session.endpoint('agent'))
  const first = await client.chat.completions.create({ model: 'any', messages })
  expect(first.choices[0]!.finish_reason).toBe('stop')
  expect(session.failure()).toBeNull()
  const second = await client.chat.completions.create({ model: 'any', messages })
  expect(second.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'abc' } })
  expect(session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'token-limit' } })
  await expect(client.chat.completions.create({ model: 'any', messages })).rejects.toMatchObject({ status: 400, code: 'limit_reached' })
  expect(started.engine.sampledTokens()).toBe(10)
})

test('parallel calls are cut together when their sum reaches maxSessionTokens', async () => {
  const everyone = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({ text: 'abcdefghijklmnopqrstuvwxyz', pieceDelayMs: 1, beforeToken: () => everyone.promise }),
  })
  const session = started.gateway.open(sessionRequest({ maxSessionTokens: 20 }))
  const calls = Array.from({ length: 4 }, () => post(session.endpoint('agent'), { messages }))
  await until(() => started.engine.inFlight() === 4)
  everyone.resolve()
  await Promise.all(calls)
  const turns = (await session.close())[0]!.turns
  expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(started.engine.sampledTokens())
  expect(started.engine.sampledTokens()).toBeGreaterThanOrEqual(20)
  expect(started.engine.sampledTokens()).toBeLessThan(20 + 4)
  expect(turns.map(({ finishReason }) => finishReason.unified)).toEqual(Array(4).fill('length'))
})

test('a call that is cut before its first token is refused, and is no turn', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: (_, call) => (call === 0 ? { text: 'x', beforeToken: () => hold.promise } : 'abcdef'),
  })
  const session = started.gateway.open(sessionRequest({ maxSessionTokens: 4, maxTurns: 2 }))
  const waiting = post(session.endpoint('agent'), { messages })
  await until(() => started.gateway.counts().inFlight === 1)
  expect((await post(session.endpoint('agent'), { messages })).status).toBe(200)
  hold.resolve()
  const refused = await waiting
  expect([refused.status, refused.json().error.code]).toEqual([400, 'limit_reached'])
  const [trajectory] = await session.close()
  expect(trajectory!.turns.map(({ completionTokenIds }) => completionTokenIds.length)).toEqual([4])
})

test('a call that is held while others spend the tokens is refused', async () => {
  const hold = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: () => ({ text: 'abcdef', beforeToken: (index) => (index === 1 ? hold.promise : undefined) }),
  })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest({ maxSessionTokens: 4 }))
  const first = post(session.endpoint('agent'), { messages })
  await until(() => engine.sampledTokens() === 1)
  await gateway.pause({ drain: false })
  const waiting = post(session.endpoint('agent'), { messages })
  await until(() => gateway.counts().calls === 2)
  hold.resolve()
  expect((await first).json().choices[0].finish_reason).toBe('length')
  const refused = await waiting
  expect([refused.status, refused.json().error.code]).toEqual([400, 'limit_reached'])
  gateway.resume()
  expect(engine.requests.length).toBe(1)
})

test('a conversation longer than the context is refused by name; one with little room is cut', async () => {
  await using started = await startGateway({ say: () => 'abcdefghij', contextLength: 76 })
  const session = started.gateway.open(sessionRequest())
  const client = openaiClient(session.endpoint('agent'))
  const short = await client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'x'.repeat(50) }] })
  expect(short.choices[0]!.finish_reason).toBe('length')
  expect(short.usage!.total_tokens).toBe(76)
  const long = client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'x'.repeat(90) }] })
  await expect(long).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' })
  expect(session.failure()).toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW', details: { stopReason: 'context-overflow' } })
})

test('a failing engine is 503 where a repetition can help, 500 where tokens were sampled already', async () => {
  const down = new TrainError('POLICY_UNAVAILABLE', 'The engine is down.')
  await using started = await startGateway({
    say: (_, call) => {
      if (call === 0) throw down
      return call === 1 ? { text: 'half', error: new Error('lost the replica') } : 'Fine.'
    },
  })
  const session = started.gateway.open(sessionRequest())
  const first = await post(session.endpoint('agent'), { messages })
  expect([first.status, first.headers.get('x-should-retry')]).toEqual([503, null])
  expect(first.json().error).toMatchObject({ code: 'policy_unavailable', type: 'server_error' })
  const second = await post(session.endpoint('agent'), { messages })
  expect([second.status, second.headers.get('x-should-retry')]).toEqual([500, 'false'])
  expect(session.failure()).toBe(down)
  expect((await post(session.endpoint('agent'), { messages })).status).toBe(200)
  const turns = (await session.close())[0]!.turns
  expect(turns.map(({ delivered, finishReason }) => [delivered, finishReason.unified])).toEqual([
    ['abandoned', 'error'],
    ['delivered', 'stop'],
  ])
  expect(turns.reduce((sum, turn) => sum + turn.completionTokenIds.length, 0)).toBe(started.engine.sampledTokens())
})

test('a stream that fails half-way ends with an error, not with an answer', async () => {
  await using started = await startGateway({ say: () => ({ text: 'half', error: new Error('lost the replica') }) })
  const session = started.gateway.open(sessionRequest())
  const stream = await openaiClient(session.endpoint('agent')).chat.completions.create({ model: 'any', messages, stream: true })
  const texts: string[] = []
  const read = async () => {
    for await (const chunk of stream) texts.push(chunk.choices[0]?.delta.content ?? '')
  }
  await expect(read()).rejects.toThrow('lost the replica')
  expect(texts.join('')).toBe('half')
  expect((await session.close())[0]!.turns).toMatchObject([{ delivered: 'abandoned' }])
})

test('every agent has its own row of random keys, and the seed of the sampling counts', async () => {
  await using started = await startGateway({ say: () => 'Fine.', seed: 5 })
  const agents = ['one', 'two'].map((name) => ({ name, trainable: true }))
  const session = started.gateway.open(sessionRequest({ agents, sample: 3 }))
  for (const agent of ['one', 'two', 'one']) await post(session.endpoint(agent), { messages })
  const sampling = { ...sessionRequest().sampling, seed: 1 }
  const later = started.gateway.open(sessionRequest({ rollout: 'rollout-2', sampling }))
  await post(later.endpoint('agent'), { messages })
  const keys = started.engine.requests.map(({ random }) => random)
  expect(keys.slice(0, 3)).toEqual([
    { seed: 5, task: 'task-1\none', sample: 3, turn: 0 },
    { seed: 5, task: 'task-1\ntwo', sample: 3, turn: 0 },
    { seed: 5, task: 'task-1\none', sample: 3, turn: 1 },
  ])
  expect(keys[3]).toMatchObject({ task: 'task-1', sample: 0, turn: 0 })
  expect(keys[3]!.seed).not.toBe(5)
})
