import { type Trajectory, type Turn, toTrainingSamples } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { logprob, promptOf } from '../testing/chat-server.ts'
import { episodeOf } from '../testing/episode-of.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest, until } from '../testing/start-gateway.ts'

const question = { role: 'user', content: 'Gold?' }
const codes = (text: string) => Int32Array.from(Buffer.from(text))

/** The first event names the prompt, every other a token. */
const halfWay = (text: string, tokens: number) => ({ text, halfWay: { events: 1 + tokens, ends: 'hang' as const } })

const bodies = {
  'chat-completions': { path: '/chat/completions', body: { messages: [question] } },
  responses: { path: '/responses', body: { input: question.content } },
  messages: { path: '/messages', body: { messages: [question], max_tokens: 64 } },
} as const

/** Asks for a stream and reads until its text has `seen`. Aborting what it resolves to leaves the stream. */
async function askUntil(baseUrl: string, seen: RegExp, dialect: keyof typeof bodies = 'chat-completions'): Promise<AbortController> {
  const { path, body } = bodies[dialect]
  const abort = new AbortController()
  const init = { method: 'POST', body: JSON.stringify({ ...body, stream: true }), signal: abort.signal }
  const response = await fetch(baseUrl + path, init)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = ''; !seen.test(text); ) text += (await reader.read()).value
  return abort
}
const askAndLeave = async (...asked: Parameters<typeof askUntil>) => (await askUntil(...asked)).abort()

test('what had come of a stream whose client left is an abandoned turn, which counts, in every dialect', async () => {
  await using started = await startChatGateway((_, index) => (index % 2 === 0 ? halfWay('79, of course', 4) : '79'))
  const { gateway, server, engine } = started
  for (const dialect of ['chat-completions', 'responses', 'messages'] as const) {
    const before = server.calls.length
    const session = gateway.open(sessionRequest({ rollout: dialect, maxSessionTokens: 12, maxTurns: 2 }))
    await askAndLeave(session.endpoint('agent').baseUrl, /" "/, dialect)
    await until(() => gateway.counts().inFlight === 0 && server.calls[before]!.aborted)
    await until(() => session.trajectories()[0]!.turns.length === 1)

    // The same question again may sample only what the first has left.
    expect((await post(session.endpoint('agent'), { messages: [question] })).status).toBe(200)
    expect(server.calls.slice(before).map(({ body }) => body['max_tokens'])).toEqual([12, 8])
    expect((await post(session.endpoint('agent'), { messages: [question] })).status).toBe(400)
    expect(session.failure()).toMatchObject({ details: { stopReason: 'turn-limit' } })

    const [trajectory] = (await session.close()) as [Trajectory]
    expect(trajectory.turns).toMatchObject([
      {
        delivered: 'abandoned',
        parent: null,
        promptTokenIds: codes(promptOf([question])),
        completionTokenIds: codes('79, '),
        rolloutLogprobs: Float32Array.from(codes('79, '), logprob),
        message: { role: 'assistant', content: '79, ' },
        finishReason: { unified: 'aborted', raw: 'client-closed' },
        usage: { completionTokens: 4 },
      },
      { delivered: 'delivered', parent: null, completionTokenIds: codes('79\0') },
    ])
    const { samples, untrained, sampled } = toTrainingSamples(episodeOf([trajectory]))
    expect([samples.length, sampled, untrained]).toEqual([1, 7, { 'abandoned-turn': 4 }])
  }
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  expect(metrics).toMatch(/^aworld_train_gateway_abandoned_turns_total 3$/m)
  expect(metrics).toMatch(/^aworld_train_gateway_sampled_tokens_total 21$/m)
  expect(engine.inFlight()).toBe(0)
})

test('a session that closes keeps what its streams had, also where its turns are made durable', async () => {
  await using started = await startChatGateway(() => halfWay('79, of course', 3))
  const durable: Turn[] = []
  const session = started.gateway.open(sessionRequest({ onTurn: async (_agent, turn) => void durable.push(turn) }))
  await askUntil(session.endpoint('agent').baseUrl, /","/)
  const [{ turns }] = (await session.close()) as [Trajectory]
  const finishReason = { unified: 'aborted', raw: 'session-closed' }
  expect(turns).toMatchObject([{ delivered: 'abandoned', completionTokenIds: codes('79,'), finishReason }])
  expect(durable).toEqual(turns)
})

test('a later request that goes on from what had come makes it delivered', async () => {
  await using started = await startChatGateway((_, index) => (index === 0 ? { text: 'Au', halfWay: { events: 4, ends: 'hang' } } : 'Yes.'))
  const session = started.gateway.open(sessionRequest())
  await askAndLeave(session.endpoint('agent').baseUrl, /finish_reason":"stop/)
  await until(() => session.trajectories()[0]!.turns.length === 1)
  expect(session.trajectories()[0]!.turns).toMatchObject([{ delivered: 'abandoned', finishReason: { unified: 'stop' } }])
  await post(session.endpoint('agent'), { messages: [question, { role: 'assistant', content: 'Au' }, { role: 'user', content: 'Sure?' }] })
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns).toMatchObject([{ delivered: 'delivered' }, { delivered: 'delivered', parent: 0 }])
})

test('a stream that had no token yet, and an answer that is none, are no turns and cost nothing', async () => {
  await using started = await startChatGateway((_, index) =>
    index === 0 ? halfWay('79', 0) : index === 1 ? new Promise<never>(() => {}) : '79',
  )
  const session = started.gateway.open(sessionRequest({ maxSessionTokens: 12, maxTurns: 1 }))
  await askAndLeave(session.endpoint('agent').baseUrl, /data:/)
  await until(() => started.gateway.counts().inFlight === 0)
  const abort = new AbortController()
  const left = post(session.endpoint('agent'), { messages: [question] }, { signal: abort.signal })
  await until(() => started.server.calls.length === 2)
  abort.abort()
  await expect(left).rejects.toThrow()
  await until(() => started.gateway.counts().inFlight === 0)
  expect((await post(session.endpoint('agent'), { messages: [question] })).status).toBe(200)
  expect(started.server.calls.map(({ body }) => body['max_tokens'])).toEqual([12, 12, 12])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns).toMatchObject([{ delivered: 'delivered' }])
  expect(session.failure()).toBeNull()
})
