import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { ServerSay } from '../testing/chat-server.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest, until } from '../testing/start-gateway.ts'
import { UsageFilter } from './usage-filter.ts'

const messages = [{ role: 'user', content: 'Atomic number of gold?' }]

/** Asks in a dialect, as its clients do. */
const dialects: Record<string, { path: string; body: object; error: (body: never) => { code?: string; type: string; message: string } }> = {
  'chat-completions': { path: '/chat/completions', body: { messages }, error: ({ error }) => error },
  responses: { path: '/responses', body: { input: messages[0]!.content }, error: ({ error }) => error },
  messages: { path: '/messages', body: { messages, max_tokens: 64 }, error: ({ error }) => error },
}

async function ask(baseUrl: string, dialect: string, extra: object = {}) {
  const { path, body } = dialects[dialect]!
  const response = await fetch(`${baseUrl}${path}`, { method: 'POST', body: JSON.stringify({ ...body, ...extra }) })
  return { status: response.status, text: await response.text() }
}

interface Case {
  readonly what: string
  readonly say: ServerSay
  readonly status: number
  readonly code: string
  /** Whether the error is that of one request and not of the rollout. */
  readonly request?: boolean
}

const overflow = JSON.stringify({
  error: { message: "This model's maximum context length is 64 tokens. However, you requested 90.", code: 400 },
})
const cases: Case[] = [
  { what: 'a context overflow', say: { status: 400, body: overflow }, status: 400, code: 'POLICY_CONTEXT_OVERFLOW' },
  {
    what: 'a bad request',
    say: { status: 400, body: '{"message":"tools[0] is wrong"}' },
    status: 400,
    code: 'GATEWAY_BAD_REQUEST',
    request: true,
  },
  {
    what: 'too many requests',
    say: { status: 429, body: 'slow down', headers: { 'retry-after': '3' } },
    status: 429,
    code: 'POLICY_RATE_LIMITED',
  },
  { what: 'a server error', say: { status: 500, body: '<html>oops</html>' }, status: 503, code: 'POLICY_UNAVAILABLE' },
  { what: 'a connection that closes', say: 'nothing', status: 503, code: 'POLICY_UNAVAILABLE' },
]

for (const dialect of Object.keys(dialects)) {
  test(`what an engine refuses is a typed error in the shape of ${dialect}, and no turn`, async () => {
    for (const { what, say, status, code, request = false } of cases) {
      await using started = await startChatGateway(() => say)
      const session = started.gateway.open(sessionRequest())
      const answer = await ask(session.endpoint('agent').baseUrl, dialect)
      expect({ what, status: answer.status }).toEqual({ what, status })
      expect(dialects[dialect]!.error(JSON.parse(answer.text) as never).message).toMatch(/policy|double|connection/)
      expect(session.failure()).toEqual(request ? null : expect.objectContaining({ code }))
      const [{ turns }] = (await session.close()) as [Trajectory]
      expect(turns).toEqual([])
      expect(started.gateway.counts()).toMatchObject({ calls: 1, failures: 1, inFlight: 0 })
      expect(started.engine.inFlight()).toBe(0)
    }
  })
}

const unreadable: { what: string; say: ServerSay }[] = [
  { what: 'garbage', say: { raw: 'lorem ipsum' } },
  { what: 'an empty body', say: { raw: '' } },
  { what: 'no ids', say: { text: 'x', choice: { token_ids: undefined } } },
  { what: 'ids without logprobs', say: { text: 'x', choice: { logprobs: null } } },
  { what: 'logprobs of other length', say: { text: 'x', choice: { logprobs: { content: [{ token: 'x', logprob: -1 }] } } } },
]

for (const { what, say } of unreadable) {
  test(`an answer with ${what} fails its rollout and no other; the next call is refused`, async () => {
    await using started = await startChatGateway((_, index) => (index === 0 ? say : 'fine'))
    const session = started.gateway.open(sessionRequest())
    const other = started.gateway.open(sessionRequest({ rollout: 'other' }))
    await post(session.endpoint('agent'), { messages })
    await until(() => session.failure() !== null)
    expect(session.failure()).toMatchObject({ code: 'POLICY_RESPONSE_INVALID' })
    const refused = await post(session.endpoint('agent'), { messages })
    expect([refused.status, refused.json().error.code]).toEqual([502, 'policy_response_invalid'])
    expect(started.server.calls).toHaveLength(1)
    expect((await post(other.endpoint('agent'), { messages })).status).toBe(200)
    expect((await session.close()).flatMap(({ turns }) => turns)).toEqual([])
    expect((await other.close()).flatMap(({ turns }) => turns)).toHaveLength(1)
    expect(other.failure()).toBeNull()
    expect(started.gateway.counts()).toMatchObject({ calls: 3, failures: 2, inFlight: 0 })
  })
}

/** A sound answer has eight events: the role, one for each letter of `gold` and for the end of the turn, the usage and the mark. */
const disagreements: { what: string; say: ServerSay; streams: readonly boolean[] }[] = [
  { what: 'a stream without the ids of two events', say: { text: 'gold', drops: [2, 3] }, streams: [true] },
  { what: 'fewer ids than its usage counts', say: { text: 'gold', usage: { completion_tokens: 7 } }, streams: [false, true] },
  { what: 'more ids than its usage counts', say: { text: 'gold', usage: { completion_tokens: 2 } }, streams: [false, true] },
  { what: 'other prompt ids than its usage counts', say: { text: 'gold', usage: { prompt_tokens: 3 } }, streams: [false, true] },
]

for (const { what, say, streams } of disagreements) {
  test(`an answer with ${what} is no turn, in every dialect, and whether or not the client asks for the usage`, async () => {
    for (const stream of streams) {
      for (const dialect of Object.keys(dialects)) {
        for (const asks of dialect === 'chat-completions' && stream ? [true, false] : [false]) {
          await using started = await startChatGateway(() => say)
          const session = started.gateway.open(sessionRequest())
          const extra = { stream, ...(asks && { stream_options: { include_usage: true } }) }
          const { text } = await ask(session.endpoint('agent').baseUrl, dialect, extra)
          if (dialect === 'chat-completions' && stream) expect(text.includes('"usage"')).toBe(asks)
          await until(() => session.failure() !== null)
          expect({ dialect, stream, asks, failure: session.failure() }).toMatchObject({ failure: { code: 'POLICY_RESPONSE_INVALID' } })
          expect((await session.close()).flatMap(({ turns }) => turns)).toEqual([])
        }
      }
    }
  })
}

test('a stream reaches a client as the server would have sent it, however its events are cut into chunks', async () => {
  const filter = new UsageFilter()
  const event = (choices: object[], usage?: object) => `data: ${JSON.stringify({ choices, ...(usage && { usage }) })}\r\n\r\n`
  const [first, last] = [event([{ delta: { content: '"usage" ü' } }]), event([{ delta: {} }], { completion_tokens: 1 })]
  const bytes = Buffer.from(`${first}${last}${event([], { completion_tokens: 2 })}data: [DONE]\n\n: end`)
  const shown = Array.from(bytes, (_, index) => filter.push(bytes.subarray(index, index + 1)))
  expect(Buffer.concat([...shown, filter.rest()]).toString('utf8')).toBe(`${first}${last}data: [DONE]\n\n: end`)
})

for (const ends of ['destroy', 'end'] as const) {
  for (const dialect of Object.keys(dialects)) {
    test(`half a stream ends with an error event in ${dialect} and is never an answer (${ends})`, async () => {
      await using started = await startChatGateway(() => ({ text: 'gold is 79', halfWay: { events: 4, ends } }))
      const session = started.gateway.open(sessionRequest())
      const { status, text } = await ask(session.endpoint('agent').baseUrl, dialect, { stream: true })
      expect(status).toBe(200)
      expect(text).toMatch(/error|failed/)
      expect(text).not.toMatch(/DONE|response\.completed|message_stop/)
      await until(() => session.failure() !== null)
      expect(session.failure()).toMatchObject({ boundary: 'policy' })
      const [{ turns }] = (await session.close()) as [Trajectory]
      const finishReason = { unified: 'error', raw: ends === 'destroy' ? 'POLICY_UNAVAILABLE' : 'POLICY_RESPONSE_INVALID' }
      expect(turns).toMatchObject([{ delivered: 'abandoned', completionTokenIds: Int32Array.from(Buffer.from('gol')), finishReason }])
      expect(started.gateway.counts().inFlight).toBe(0)
    })
  }
}

test('tokens of a stream that broke are not lost where the engine has named them', async () => {
  await using started = await startChatGateway(() => ({ text: 'gold', halfWay: { events: 6, ends: 'destroy' } }))
  const session = started.gateway.open(sessionRequest())
  await post(session.endpoint('agent'), { messages, stream: true })
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns).toMatchObject([{ delivered: 'abandoned', completionTokenIds: Int32Array.from(Buffer.from('gold\0')) }])
  expect(session.failure()).toMatchObject({ code: 'POLICY_UNAVAILABLE' })
})

test('a stream that the engine gives up in words leaves its tokens, and the words reach the client in every dialect', async () => {
  const token = (text: string) => ({
    delta: { content: text },
    token_ids: [text.charCodeAt(0)],
    logprobs: { content: [{ logprob: -1 }] },
  })
  const events = [
    { choices: [{ index: 0, ...token('g') }], prompt_token_ids: [1, 2] },
    { choices: [{ index: 0, ...token('data: {"error":') }] },
    { error: { message: 'CUDA is out of memory: ü', type: 'InternalServerError', code: 500 } },
  ]
  const raw = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`
  await using started = await startChatGateway(() => ({ raw, type: 'text/event-stream' }))
  for (const [dialect, { path, body }] of Object.entries(dialects)) {
    const session = started.gateway.open(sessionRequest({ rollout: dialect }))
    const init = { method: 'POST', body: JSON.stringify({ ...body, stream: true }) }
    const answer = await (await fetch(session.endpoint('agent').baseUrl + path, init)).text()
    expect(answer).toContain('out of memory: ü')
    expect(answer).not.toMatch(/response\.completed|message_stop/)
    if (dialect === 'chat-completions') expect(answer).toBe(raw)
    await until(() => session.failure() !== null)
    expect(session.failure()).toMatchObject({ boundary: 'policy', message: expect.stringContaining('out of memory: ü') })
    const [{ turns }] = (await session.close()) as [Trajectory]
    const finishReason = { unified: 'error', raw: expect.stringMatching(/^POLICY_/) }
    expect(turns).toMatchObject([{ delivered: 'abandoned', completionTokenIds: Int32Array.from(Buffer.from('gd')), finishReason }])
  }
  expect(started.gateway.counts()).toMatchObject({ calls: 3, failures: 3, inFlight: 0 })
})

test('bodies that are no object, or that some JSON readers accept and others do not, are refused before the engine hears of them', async () => {
  await using started = await startChatGateway(() => 'x')
  const session = started.gateway.open(sessionRequest())
  for (const body of ['', 'null', '[1,2]', '"text"', '{"messages":[]', '{"messages":[],"n":3}', '{"messages":[],"temperature":NaN}']) {
    const { status } = await post(session.endpoint('agent'), body)
    expect([body, status]).toEqual([body, 400])
  }
  expect(started.server.calls).toEqual([])
  expect(session.failure()).toBeNull()
  await session.close()
})

test('a model that nobody serves is refused in the shape of every dialect, and the engine hears nothing', async () => {
  await using started = await startChatGateway(() => 'x')
  const session = started.gateway.open(sessionRequest())
  for (const [dialect, { error }] of Object.entries(dialects)) {
    const { status, text } = await ask(session.endpoint('agent').baseUrl, dialect, { model: 'nobody' })
    expect([dialect, status]).toEqual([dialect, 404])
    expect(error(JSON.parse(text) as never)).toMatchObject({ code: 'model_not_found', message: expect.stringContaining('"nobody"') })
  }
  expect(started.server.calls).toEqual([])
  expect(session.failure()).toBeNull()
  await session.close()
})
