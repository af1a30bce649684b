import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { SeenCall, ServerSay } from '../testing/chat-server.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest, until } from '../testing/start-gateway.ts'

const messages = [{ role: 'user', content: 'Gold?' }]
const sampling = { ...sessionRequest().sampling, maxTokens: 100 }

/** A server whose answers have as many tokens as they may, or `length` including the last one, and wait until they are released. */
function pendingServer(length = Number.POSITIVE_INFINITY) {
  const pending: { readonly call: SeenCall; readonly answer: () => void }[] = []
  const say = (call: SeenCall) =>
    new Promise<ServerSay>((resolve) => {
      const tokens = Math.min(length, call.body['max_tokens'] as number)
      const choice = { finish_reason: tokens < length ? 'length' : 'stop' }
      pending.push({ call, answer: () => resolve({ text: 'x'.repeat(tokens - 1), ...(call.body.stream !== true && { choice }) }) })
    })
  return { pending, say, maxTokens: () => pending.map(({ call }) => call.body['max_tokens']) }
}

const sum = (turns: Trajectory['turns']) => turns.reduce((total, turn) => total + turn.completionTokenIds.length, 0)

for (const stream of [false, true]) {
  test(`parallel calls that sample all they may do not pass maxSessionTokens (stream: ${stream})`, async () => {
    const { say, pending, maxTokens } = pendingServer()
    await using started = await startChatGateway(say)
    const session = started.gateway.open(sessionRequest({ sampling, maxSessionTokens: 250 }))
    const calls = Array.from({ length: 12 }, () => post(session.endpoint('agent'), { messages, stream }))
    await until(() => pending.length === 2)
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(maxTokens()).toEqual([100, 100])
    pending[0]!.answer()
    await new Promise((resolve) => setTimeout(resolve, 60))
    // The second call still holds its share: 50 are left, which the third would have to share.
    expect(maxTokens()).toEqual([100, 100])
    pending[1]!.answer()
    await until(() => pending.length === 3)
    expect(maxTokens()).toEqual([100, 100, 50])
    pending[2]!.answer()
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, ...Array(9).fill(400)])
    for (const answer of answers.filter(({ status }) => status === 400)) expect(answer.text).toContain('limit_reached')
    expect(session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'token-limit' } })
    const [{ turns }] = (await session.close()) as [Trajectory]
    expect([turns.length, sum(turns)]).toEqual([3, 250])
    expect(started.server.calls).toHaveLength(3)
  })
}

test('what a call held and did not use is there for those that wait, in the order of their asking', async () => {
  const { say, pending, maxTokens } = pendingServer(10)
  await using started = await startChatGateway(say)
  const session = started.gateway.open(sessionRequest({ sampling, maxSessionTokens: 125 }))
  const ask = (more: object) => post(session.endpoint('agent'), { messages, ...more })
  const calls = [ask({})]
  await until(() => pending.length === 1)
  calls.push(ask({ max_tokens: 90 }))
  await until(() => started.gateway.counts().calls === 2)
  // It would fit, but waits for the one before it.
  calls.push(ask({ max_tokens: 20 }))
  await until(() => started.gateway.counts().calls === 3)
  expect(maxTokens()).toEqual([100])
  pending[0]!.answer()
  await until(() => pending.length === 3)
  expect(maxTokens()).toEqual([100, 90, 20])
  pending[1]!.answer()
  pending[2]!.answer()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect([turns.length, sum(turns)]).toEqual([3, 30])
  expect(session.failure()).toBeNull()
})

test('calls that all find room wait for none', async () => {
  const { say, pending } = pendingServer(10)
  await using started = await startChatGateway(say)
  const session = started.gateway.open(sessionRequest({ sampling, maxSessionTokens: 1000 }))
  const calls = Array.from({ length: 10 }, () => post(session.endpoint('agent'), { messages }))
  await until(() => pending.length === 10)
  for (const { answer } of pending) answer()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(10).fill(200))
  await session.close()
})

test('a call that waits ends with its client or its session, and one that fails gives back what it held', async () => {
  const { say, pending, maxTokens } = pendingServer(10)
  await using started = await startChatGateway((call, index) => (index === 0 ? { status: 500, body: 'oops' } : say(call)))
  const session = started.gateway.open(sessionRequest({ sampling, maxSessionTokens: 100 }))
  const endpoint = session.endpoint('agent')
  expect((await post(endpoint, { messages })).status).toBe(503)
  const first = post(endpoint, { messages })
  await until(() => pending.length === 1)
  const abort = new AbortController()
  const left = post(endpoint, { messages }, { signal: abort.signal })
  const closed = post(endpoint, { messages })
  await until(() => started.gateway.counts().calls === 4)
  abort.abort()
  await expect(left).rejects.toThrow()
  const closing = session.close()
  expect((await closed).status).toBe(404)
  await closing
  await first.catch(() => {})
  expect(maxTokens()).toEqual([100])
  expect(started.gateway.counts().inFlight).toBe(0)
})

test('a pause holds no call back that waits for tokens of one before it', async () => {
  const { say, pending } = pendingServer(10)
  await using started = await startChatGateway(say)
  const session = started.gateway.open(sessionRequest({ sampling, maxSessionTokens: 100 }))
  const calls = [post(session.endpoint('agent'), { messages })]
  await until(() => pending.length === 1)
  calls.push(post(session.endpoint('agent'), { messages }))
  await until(() => started.gateway.counts().calls === 2)
  const paused = started.gateway.pause({ drain: true })
  pending[0]!.answer()
  await paused
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(pending).toHaveLength(1)
  started.gateway.resume()
  await until(() => pending.length === 2)
  pending[1]!.answer()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200])
  await session.close()
})
