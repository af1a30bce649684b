import { expect, test } from 'vitest'
import { sessionRequest, startGateway } from '../testing/start-gateway.ts'
import { dialects } from './index.ts'

const good: Readonly<Record<string, object>> = {
  '/chat/completions': { messages: [{ role: 'user', content: 'Hi.' }] },
  '/responses': { input: 'Hi.' },
  '/messages': { messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 9 },
}

interface Failure {
  readonly type: string
  readonly message: string
  readonly code: string
  readonly param: string | null
}

const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

/** Bodies that no dialect reads, made of a good one. */
const bad: readonly (readonly [
  name: string,
  body: (json: string) => string | Uint8Array,
  status: number,
  code: string,
  message: RegExp,
])[] = [
  ['empty', () => '', 400, 'invalid_request', /not valid JSON/],
  ['no JSON', () => 'hello', 400, 'invalid_request', /not valid JSON/],
  ['cut', (json) => json.slice(0, -1), 400, 'invalid_request', /not valid JSON/],
  ['two bodies', (json) => json + json, 400, 'invalid_request', /not valid JSON/],
  [
    'not UTF-8',
    (json) => Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0xff, 0x7d])]),
    400,
    'invalid_request',
    /not valid UTF-8/,
  ],
  ['a list', () => '[]', 400, 'invalid_request', /"body" is an array/],
  ['bottomless', () => deep(20_000), 400, 'invalid_request', /missing|empty/],
  ['too large', (json) => `${json.slice(0, -1)},"x":"${'x'.repeat(300_000)}"}`, 413, 'request_too_large', /larger than 200000 bytes/],
]

for (const [path, dialect] of dialects) {
  test(`${path}: a body that nobody reads is refused in the shape of the dialect, and harms nothing`, async () => {
    await using started = await startGateway({ say: () => 'Fine.', limits: { maxBodyBytes: 200_000 } })
    const session = started.gateway.open(sessionRequest())
    const { baseUrl } = session.endpoint('agent')
    const json = JSON.stringify(good[path])
    const post = (body: string | Uint8Array) => fetch(baseUrl + path, { method: 'POST', body: body as string })

    for (const [name, toBody, status, code, message] of bad) {
      const response = await post(toBody(json))
      const answer = (await response.json()) as { type?: string; error: Failure }
      expect([name, response.status, answer.error.code]).toEqual([name, status, code])
      expect(answer.error.message).toMatch(message)
      expect(answer.type).toBe(dialect.name === 'messages' ? 'error' : undefined)
      expect(response.headers.get('x-should-retry')).toBe('false')
    }
    expect(started.engine.requests.length).toBe(0)
    expect(session.failure()).toBeNull()
    expect((await post(json)).status).toBe(200)
  })

  test(`${path}: other methods and paths below it are refused in the shape of the dialect`, async () => {
    await using started = await startGateway({ say: () => 'Fine.' })
    const { baseUrl } = started.gateway.open(sessionRequest()).endpoint('agent')
    for (const [method, below, status] of [
      ['PUT', '', 405],
      ['POST', '/nothing', 404],
    ] as const) {
      const response = await fetch(baseUrl + path + below, { method, body: '{}' })
      const answer = (await response.json()) as { type?: string }
      expect([response.status, answer.type]).toEqual([status, dialect.name === 'messages' ? 'error' : undefined])
    }
  })
}

const user = { role: 'user', content: 'Hi.' }
const call = (type: string, ids: object) => ({ type, name: 'f', ...ids })
const block = (role: string, content: object) => ({ role, content: [content] })
const chatCall = { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] }
const chatResult = { role: 'tool', tool_call_id: 'a', content: '1' }
const itemCall = call('function_call', { call_id: 'a', arguments: '{}' })
const itemResult = { type: 'function_call_output', call_id: 'a', output: '1' }
const blockCall = block('assistant', call('tool_use', { id: 'a', input: {} }))
const blockResult = block('user', { type: 'tool_result', tool_use_id: 'a', content: '1' })

/** Histories with a result without a call, a repeated id, a call without a result, and an assistant that speaks first. */
const odd: Readonly<Record<string, readonly [field: string, histories: readonly (readonly object[])[]]>> = {
  '/chat/completions': [
    'messages',
    [
      [user, chatResult],
      [user, chatCall, chatResult, chatCall, chatResult],
      [user, chatCall, user],
      [{ role: 'assistant', content: 'I speak first.' }, user],
    ],
  ],
  '/responses': [
    'input',
    [
      [user, itemResult],
      [user, itemCall, itemResult, itemCall, itemResult],
      [user, itemCall, user],
      [{ role: 'assistant', content: 'I speak first.' }, user],
    ],
  ],
  '/messages': [
    'messages',
    [
      [user, blockResult],
      [user, blockCall, blockResult, blockCall, blockResult],
      [user, blockCall, user],
      [{ role: 'assistant', content: 'I speak first.' }, user],
    ],
  ],
}

for (const [path, [field, histories]] of Object.entries(odd)) {
  test(`${path}: what is odd in a history is served and counted`, async () => {
    await using started = await startGateway({ say: () => 'Fine.' })
    const session = started.gateway.open(sessionRequest())
    for (const history of histories) {
      const body = JSON.stringify({ ...good[path], [field]: history })
      const response = await fetch(session.endpoint('agent').baseUrl + path, { method: 'POST', body })
      expect([response.status, await response.json()]).toMatchObject([200, {}])
    }
    expect(started.gateway.counts().tolerated).toMatchObject({ 'result-without-call': 1, 'repeated-call-id': 1 })
    expect(session.failure()).toBeNull()
  })
}
