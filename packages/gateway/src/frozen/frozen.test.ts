import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SessionRequest, Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway, type FrozenRoute, type GatewayOptions } from '../index.ts'
import { sessionRequest, until } from '../testing/start-gateway.ts'
import { say, startThirdParty, type ThirdParty } from '../testing/third-party.ts'

const key = 'sk-proj-0123456789abcdef/+"x'
const dialects = ['chat-completions', 'responses', 'messages'] as const
type DialectName = (typeof dialects)[number]

const question = 'Is 79 right?'
const requests: Record<DialectName, { path: string; body: object }> = {
  'chat-completions': { path: '/chat/completions', body: { messages: [{ role: 'user', content: question }] } },
  responses: { path: '/responses', body: { input: question } },
  messages: { path: '/messages', body: { max_tokens: 64, messages: [{ role: 'user', content: question }] } },
}

const route = (party: ThirdParty, override: Partial<FrozenRoute> = {}): FrozenRoute => ({
  kind: 'frozen',
  baseUrl: party.url,
  dialect: 'chat-completions',
  model: 'judge-large-2026',
  apiKey: key,
  price: { input: 3, output: 15, cachedInput: 0.3 },
  ...override,
})

/** One agent, whose model is `judge`. */
async function open(judge: FrozenRoute, overrides: Partial<SessionRequest> = {}, options: Partial<GatewayOptions> = {}) {
  const gateway = await createGateway({ models: { judge }, seed: 1, ...options })
  const session = gateway.open(sessionRequest({ agents: [{ name: 'agent', trainable: false, model: 'judge' }], ...overrides }))
  const ask = async (dialect: DialectName, extra: object = {}) => {
    const { path, body } = requests[dialect]
    const response = await fetch(session.endpoint('agent').baseUrl + path, {
      method: 'POST',
      headers: { authorization: 'Bearer capability', 'x-api-key': 'capability' },
      body: JSON.stringify({ ...body, ...extra }),
    })
    return { status: response.status, text: await response.text() }
  }
  return { gateway, session, ask, [Symbol.asyncDispose]: () => gateway.close() }
}

for (const spoken of dialects) {
  for (const served of dialects) {
    for (const stream of [false, true]) {
      if (served === 'responses' && spoken !== served) continue
      test(`a judge that speaks ${served} answers an agent that speaks ${spoken} (stream: ${stream})`, async () => {
        await using party = await startThirdParty((call, response) => say(call, response, 'Yes: 79 ✓'))
        await using started = await open(route(party, { dialect: served }))
        const { status, text } = await started.ask(spoken, { model: 'whatever', stream, temperature: 0.25 })
        expect(status).toBe(200)
        const answer = stream ? [...text.matchAll(/"(?:content|delta|text)":"([^"]*)"/g)].map(([, piece]) => piece).join('') : text
        expect(answer).toContain('Yes: 79 ✓')
        const [call] = party.calls
        expect(call).toMatchObject({ path: `/v1${requests[served].path}`, body: { model: 'judge-large-2026' } })
        expect(call!.headers).toMatchObject(served === 'messages' ? { 'x-api-key': key } : { authorization: `Bearer ${key}` })
        expect(JSON.stringify(call!.headers)).not.toContain('capability')
        if (spoken === served) expect(call!.body).toMatchObject({ temperature: 0.25 })

        const [trajectory] = (await started.session.close()) as [Trajectory]
        expect(trajectory).toMatchObject({ policy: 'judge', trainable: false })
        expect(trajectory.turns).toMatchObject([
          {
            model: 'judge',
            capture: { tokens: 'none' },
            promptTokenIds: new Int32Array(0),
            completionTokenIds: new Int32Array(0),
            message: { role: 'assistant', content: 'Yes: 79 ✓' },
            messagesDelta: [{ role: 'user', content: question }],
            usage: { promptTokens: 100, completionTokens: 10, cachedTokens: 40 },
            finishReason: { unified: 'stop' },
            delivered: 'delivered',
          },
        ])
        expect(trajectory.turns[0]!.cost).toBeCloseTo((60 * 3 + 40 * 0.3 + 10 * 15) / 1e6, 12)
      })
    }
  }
}

test('bytes of the own dialect pass as they are but for the model; a stream shows the usage only where it was asked for', async () => {
  await using party = await startThirdParty((call, response) => say(call, response, 'ok'))
  await using started = await open(route(party))
  const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] }]
  await started.ask('chat-completions', { model: 'x', messages, big: 1e21, unknown: { a: [1.5] } })
  expect(party.calls[0]!.raw).toBe(JSON.stringify({ messages, model: 'judge-large-2026', big: 1e21, unknown: { a: [1.5] } }))
  const hidden = await started.ask('chat-completions', { stream: true })
  expect(party.calls[1]!.body['stream_options']).toEqual({ include_usage: true })
  expect(hidden.text).not.toContain('"usage"')
  expect(hidden.text).toContain('[DONE]')
  const shown = await started.ask('chat-completions', { stream: true, stream_options: { include_usage: true } })
  expect(shown.text).toContain('"usage"')
  const [{ turns }] = (await started.session.close()) as [Trajectory]
  expect(turns.map(({ usage }) => usage.promptTokens)).toEqual([100, 100, 100])
  expect(turns[0]!.messagesDelta[0]!.content).toContain('data:image/png')
})

test('a bottomless body is passed on and recorded as it is, or refused where a recording would have to compare it', async () => {
  const deep = `${'['.repeat(50_000)}1${']'.repeat(50_000)}`
  const directory = await mkdtemp(join(tmpdir(), 'frozen-test-'))
  for (const [cassette, status] of [
    [undefined, 200],
    [{ path: join(directory, 'judge.jsonl'), mode: 'record' as const }, 400],
  ] as const) {
    await using party = await startThirdParty((call, response) => say(call, response, 'ok'))
    await using started = await open(route(party, { ...(cassette && { cassette }) }))
    const { baseUrl } = started.session.endpoint('agent')
    for (const body of [`{"messages":[{"role":"user","content":"x"}],"x":${deep}}`, `{"messages":${deep}}`]) {
      const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body })
      expect([body.slice(0, 30), response.status]).toEqual([body.slice(0, 30), status])
      const { error } = (await response.json()) as { error?: { code: string } }
      expect(error?.code).toBe(status === 200 ? undefined : 'invalid_request')
    }
    expect(started.session.failure()).toBeNull()
    const [{ turns }] = (await started.session.close()) as [Trajectory]
    expect(turns.map(({ messagesDelta }) => messagesDelta[0]!.content?.slice(0, 14))).toEqual(status === 200 ? ['x', '{"messages":[['] : [])
  }
  await rm(directory, { recursive: true })
})

test('the key is in no answer, error, turn, log or metric, also where the third party repeats it', async () => {
  const logged: unknown[] = []
  const escaped = JSON.stringify(key).slice(1, -1)
  await using party = await startThirdParty((call, response, index) => {
    if (index < 4) return say(call, response, `your key is ${key}`)
    response.writeHead([401, 400, 500][index - 4]!, { 'content-type': 'application/json', 'x-key': 'hidden' })
    response.end(JSON.stringify({ error: { message: `Incorrect API key provided: ${key}.` } }))
  })
  const texts: string[] = []
  const sessions: Trajectory[] = []
  for (const stream of [false, true]) {
    await using started = await open(route(party), {}, { logger: { warn: (...line) => logged.push(line) } })
    texts.push((await started.ask('chat-completions', { stream })).text, (await started.ask('messages', { stream })).text)
    sessions.push(...(await started.session.close()))
  }
  await using started = await open(route(party), {}, { logger: { warn: (...line) => logged.push(line) } })
  const statuses: number[] = []
  for (let call = 0; call < 3; call++) {
    const { status, text } = await started.ask('chat-completions')
    statuses.push(status)
    texts.push(text)
  }
  expect(statuses).toEqual([502, 400, 502])
  texts.push(
    await (await fetch(`${started.gateway.url}/metrics`)).text(),
    String(started.session.failure()),
    started.session.failure()!.stack!,
  )
  const everything = [
    texts.join('\n'),
    JSON.stringify(sessions),
    JSON.stringify(logged, (_, value) =>
      value instanceof Error ? { ...value, message: value.message, stack: value.stack, cause: value.cause } : value,
    ),
  ].join('\n')
  expect(everything).toContain('[redacted]')
  expect(everything).not.toContain(key)
  expect(everything).not.toContain(escaped)
  expect(started.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED', message: expect.stringContaining('Check its key') })
  expect(logged.length).toBeGreaterThan(0)
})

test('a key in a header of the configuration is hidden too, and the query of the base URL is sent', async () => {
  const secret = 'azure-secret-1234'
  let request = ''
  await using party = await startThirdParty((call, response) => {
    request = `${call.path} ${call.headers['api-key']}`
    say({ ...call, path: call.path.split('?')[0]! }, response, `your key is ${secret}`)
  })
  const headers = { 'api-key': secret }
  await using started = await open({ ...route(party, { headers }), baseUrl: `${party.url}?api-version=2026-01-01` })
  const { text } = await started.ask('chat-completions')
  expect(request).toContain('/chat/completions?api-version=2026-01-01 azure-secret-1234')
  expect(text).toContain('[redacted]')
  expect(text + JSON.stringify(await started.session.close())).not.toContain(secret)
})

test('the key comes from the environment, and a gateway without it does not start', async () => {
  await using party = await startThirdParty((call, response) => say(call, response, 'ok'))
  const name = 'AWORLD_TRAIN_TEST_JUDGE_KEY'
  await expect(open(route(party, { apiKey: { env: name } }))).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(name),
  })
  process.env[name] = 'from-the-environment'
  try {
    await using started = await open(route(party, { apiKey: { env: name } }))
    await started.ask('chat-completions')
    expect(party.calls[0]!.headers.authorization).toBe('Bearer from-the-environment')
  } finally {
    delete process.env[name]
  }
})

test.each([
  ['maxCost', { maxCost: 0.0006 }],
  ['maxFrozenTokens', { maxFrozenTokens: 200 }],
] as const)('%s: the call that begins at or above it is refused', async (option, limits) => {
  await using party = await startThirdParty((call, response) => say(call, response, 'ok'))
  await using started = await open(route(party), limits)
  const statuses: number[] = []
  for (let call = 0; call < 4; call++) statuses.push((await started.ask('chat-completions')).status)
  expect(statuses).toEqual([200, 200, 400, 400])
  expect(party.calls).toHaveLength(2)
  expect(started.session.failure()).toMatchObject({
    code: 'AGENT_LIMIT',
    details: { stopReason: 'cost-limit' },
    message: expect.stringContaining(option),
  })
})

test('what is not reported is charged by its length: answers without usage, and calls that were given up', async () => {
  const content = 'x'.repeat(4_000)
  const body = JSON.stringify({ model: 'judge', messages: [{ role: 'user', content }] })
  const usage = { choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }] }
  for (const silent of [false, true]) {
    await using party = await startThirdParty((_, response) => {
      if (!silent) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(usage))
    })
    await using started = await open(route(party), { maxFrozenTokens: 1_500 })
    const { baseUrl } = started.session.endpoint('agent')
    const statuses: (number | string)[] = []
    for (let call = 0; call < 3; call++) {
      const leave = new AbortController()
      const answering = fetch(`${baseUrl}/chat/completions`, { method: 'POST', body, signal: leave.signal })
      if (silent && call < 2) {
        await until(() => party.calls.length === call + 1)
        leave.abort()
      }
      statuses.push(
        await answering.then(
          ({ status }) => status,
          () => 'gone',
        ),
      )
      if (silent && call < 2) await until(() => party.aborted() === call + 1)
    }
    expect(statuses).toEqual(silent ? ['gone', 'gone', 400] : [200, 200, 400])
    expect(party.calls).toHaveLength(2)
    const [trajectory] = await started.session.close()
    expect(trajectory!.turns.map((turn) => turn.usage.promptTokens)).toEqual(silent ? [] : [0, 0])
  }
})

test('a call that is refused for load is repeated after the time that was named, no other is', async () => {
  const times: number[] = []
  await using party = await startThirdParty((call, response, index) => {
    times.push(performance.now())
    if (index < 2) response.writeHead(index === 0 ? 429 : 529, { 'retry-after': '0.05' }).end('busy')
    else if (index === 2) say(call, response, 'ok')
    else response.writeHead(500).end('oops')
  })
  await using started = await open(route(party))
  expect((await started.ask('chat-completions')).status).toBe(200)
  expect(party.calls).toHaveLength(3)
  expect(times[1]! - times[0]!).toBeGreaterThan(45)
  expect((await started.ask('chat-completions')).status).toBe(502)
  expect(party.calls).toHaveLength(4)
})

test('load without end, silence, garbage, half an answer and nobody there each fail the rollout, typed', async () => {
  const cases: [(response: Parameters<Parameters<typeof startThirdParty>[0]>[1]) => void, number][] = [
    [(response) => void response.writeHead(429, { 'retry-after': '0' }).end('{"error":{"message":"quota"}}'), 429],
    [(response) => void response, 502],
    [(response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('<html>'), 502],
    [(response) => void response.writeHead(200, { 'content-length': 900 }).write('{"choices":', () => response.destroy()), 502],
    [(response) => void response.destroy(), 502],
  ]
  for (const [answer, status] of cases) {
    await using party = await startThirdParty((_, response) => answer(response))
    await using started = await open(route(party, { retries: 1, timeoutMs: 3_000 }))
    expect((await started.ask('chat-completions')).status).toBe(status)
    expect(started.session.failure()).toMatchObject({
      code:
        status === 502 && answer.length === 0
          ? 'FROZEN_MODEL_FAILED'
          : expect.stringMatching(/FROZEN_MODEL_FAILED|POLICY_RESPONSE_INVALID/),
    })
    expect((await started.session.close()).flatMap(({ turns }) => turns)).toEqual([])
  }
  const party = await startThirdParty(() => {})
  await party[Symbol.asyncDispose]()
  await using started = await open(route(party, { retries: 0 }))
  expect((await started.ask('chat-completions')).status).toBe(502)
  expect(started.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED', message: expect.stringContaining('cannot be reached') })
})

test('a client that hangs up ends the call at the third party', async () => {
  await using party = await startThirdParty(
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"choices":[]}\n\n'),
  )
  await using started = await open(route(party))
  const abort = new AbortController()
  const { baseUrl } = started.session.endpoint('agent')
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...requests['chat-completions'].body, stream: true }),
    signal: abort.signal,
  })
  expect(response.status).toBe(200)
  abort.abort()
  await until(() => party.aborted() === 1)
  expect((await started.session.close()).flatMap(({ turns }) => turns)).toEqual([])
  expect(started.session.failure()).toBeNull()
})

test('no more calls are under way than the model allows, and a paused policy does not hold them', async () => {
  const pending: (() => void)[] = []
  await using party = await startThirdParty((call, response) => void pending.push(() => say(call, response, 'ok')))
  await using started = await open(route(party, { maxInFlight: 3 }))
  await started.gateway.pause({ drain: true })
  const calls = Array.from({ length: 12 }, () => started.ask('chat-completions'))
  for (let left = 12; left > 0; left--) {
    await until(() => pending.length >= Math.min(3, left))
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(pending).toHaveLength(Math.min(3, left))
    pending.shift()!()
  }
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(12).fill(200))
})

test('an agent that is to be trained cannot have it as its model', async () => {
  await using party = await startThirdParty(() => {})
  await using gateway = {
    gateway: await createGateway({ models: { judge: route(party) }, seed: 1 }),
    [Symbol.asyncDispose]: () => gateway.gateway.close(),
  }
  expect(() => gateway.gateway.open(sessionRequest())).toThrow(/third party/)
})
