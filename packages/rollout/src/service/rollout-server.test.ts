import { once } from 'node:events'
import { connect } from 'node:net'
import type { RunEvent } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { memoryStore } from '../testing/memory-store.ts'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { createRolloutServer } from './rollout-server.ts'
import { forever, serveService, startService } from './start-service.test-support.ts'

interface Body {
  readonly status?: string
  readonly error?: { readonly code: string; readonly message: string }
}

const json = { 'content-type': 'application/json' }
const answerOf = async (response: Response) => ({ status: response.status, body: (await response.json()) as Body })

test('a rollout over HTTP is the rollout in process', async () => {
  await using started = await serveService()
  const { client, service, server } = started
  expect(await client.submit(rolloutRequest('step 1/é'))).toMatchObject({ status: 'queued', episode: null })
  const state = await client.get('step 1/é', { waitMs: 30_000 })
  expect(state).toEqual(service.get('step 1/é'))
  expect(state.episode!.trajectories[0]!.turns[0]!.completionTokenIds).toBeInstanceOf(Int32Array)
  expect(state.samples[0]!.lossMask).toBeInstanceOf(Uint8Array)
  const bare = await fetch(`${server.url}/v1/rollouts/${encodeURIComponent('step 1/é')}?include=samples`)
  expect(await bare.json()).toMatchObject({ status: 'done', episode: null, samples: [{}] })
  expect(await client.cancel('step 1/é')).toMatchObject({ status: 'done' })
})

test('submitting answers 202, then 200, then 409 for other content; Location leads to the rollout', async () => {
  await using started = await serveService({ run: forever })
  const url = `${started.server.url}/v1/rollouts`
  const post = (request: object) => fetch(url, { method: 'POST', headers: json, body: JSON.stringify(request) })
  const first = await post(rolloutRequest('a/b'))
  expect([first.status, first.headers.get('location')]).toEqual([202, '/v1/rollouts/a%2Fb'])
  await expect.poll(() => started.service.get('a/b').status).toBe('running')
  expect(await answerOf(await post(rolloutRequest('a/b')))).toMatchObject({ status: 200, body: { status: 'running' } })
  expect(await answerOf(await post(rolloutRequest('a/b', { sample: 3 })))).toMatchObject({
    status: 409,
    body: { error: { code: 'ROLLOUT_CONFLICT' } },
  })
  const before = performance.now()
  const waited = await answerOf(await fetch(`${url}/a%2Fb?wait=40ms`))
  expect([waited.body.status, performance.now() - before >= 39]).toEqual(['running', true])
  expect(await answerOf(await fetch(`${url}/a%2Fb`, { method: 'DELETE' }))).toMatchObject({ status: 200, body: { status: 'cancelled' } })
})

test('what is wrong with a request is said, with its status', async () => {
  await using started = await serveService({}, { limits: { maxBodyBytes: 2_000 } })
  const { url } = started.server
  const post = (body: string) => fetch(`${url}/v1/rollouts`, { method: 'POST', headers: json, body })
  const cases: readonly (readonly [Promise<Response>, number, string, RegExp])[] = [
    [post(''), 400, 'ROLLOUT_INVALID', /not JSON/],
    [post('{"key": 1}'), 400, 'ROLLOUT_INVALID', /version: .*; key: /],
    [post(JSON.stringify({ ...rolloutRequest('a'), extra: 1 })), 400, 'ROLLOUT_INVALID', /extra/],
    [post(`"${'x'.repeat(3_000)}"`), 413, 'ROLLOUT_INVALID', /larger than 2000 bytes/],
    [fetch(`${url}/v1/rollouts`), 405, 'ROLLOUT_INVALID', /answers POST, not GET/],
    [fetch(`${url}/v1/rollouts/a`, { method: 'PUT' }), 405, 'ROLLOUT_INVALID', /answers GET, HEAD, DELETE, not PUT/],
    [fetch(`${url}/v1/rollouts/a`), 404, 'ROLLOUT_UNKNOWN', /no rollout "a"/],
    [fetch(`${url}/v1/rollouts/a/events`), 404, 'ROLLOUT_UNKNOWN', /no rollout "a"/],
    [fetch(`${url}/v1/rollouts/%ff`), 404, 'ROLLOUT_UNKNOWN', /percent-encoded/],
    [fetch(`${url}/v1/rollouts/a?wait=soon`), 400, 'ROLLOUT_INVALID', /"wait" is "soon"/],
    [fetch(`${url}/v1/rollouts/a?include=episodes`), 400, 'ROLLOUT_INVALID', /Did you mean "episode"/],
    [fetch(`${url}/v2/rollouts`), 404, 'ROLLOUT_INVALID', /is not served; known are/],
    [fetch(`${url}/v1/rollouts/a/b/c`), 404, 'ROLLOUT_INVALID', /is not served/],
  ]
  for (const [pending, status, code, message] of cases) {
    const { body, ...answer } = await answerOf(await pending)
    expect([answer.status, body.error?.code]).toEqual([status, code])
    expect(body.error?.message).toMatch(message)
  }
  expect((await fetch(`${url}/health`)).status).toBe(200)
})

test.each(['GET // HTTP/1.1', 'GET // HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade', 'GET //[/v1 HTTP/1.1'])(
  'a path that names no place is not found, and the service goes on: %j',
  async (head) => {
    await using started = await serveService()
    const { host, port } = new URL(started.server.url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`${head}\r\nhost: ${host}\r\n\r\n`)
    const [answer] = await once(socket, 'data')
    socket.destroy()
    expect(String(answer)).toMatch(/^HTTP\/1\.1 404/)
    expect((await fetch(`${started.server.url}/health`)).status).toBe(200)
  },
)

test('a known path says which methods it has', async () => {
  await using started = await serveService({ run: forever })
  const { url } = started.server
  await started.client.submit(rolloutRequest('a'))
  const paths = {
    '/health': 'GET, HEAD',
    '/ready': 'GET, HEAD',
    '/metrics': 'GET, HEAD',
    '/v1/events': 'GET',
    '/v1/rollouts': 'POST',
    '/v1/rollouts/a': 'GET, HEAD, DELETE',
    '/v1/rollouts/a/events': 'GET',
  }
  for (const [path, allow] of Object.entries(paths)) {
    for (const method of ['PUT', 'OPTIONS']) {
      const refused = await fetch(url + path, { method })
      expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, allow])
    }
    if (allow.includes('HEAD')) expect([path, (await fetch(url + path, { method: 'HEAD' })).status]).toEqual([path, 200])
  }
})

test('a full queue answers 503 and makes up no time, and a client that retries gets in', async () => {
  const bytes = Buffer.byteLength(JSON.stringify(rolloutRequest('a')))
  await using started = await serveService({ run: forever, limits: { maxQueuedBytes: bytes } })
  await started.client.submit(rolloutRequest('a'))
  const refused = await fetch(`${started.server.url}/v1/rollouts`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify(rolloutRequest('b')),
  })
  expect([refused.status, refused.headers.get('retry-after'), (await answerOf(refused)).body.error?.code]).toEqual([
    503,
    null,
    'ROLLOUT_QUEUE_FULL',
  ])
  const submitted = started.client.submit(rolloutRequest('b'))
  await started.client.cancel('a')
  expect((await submitted).status).toBe('queued')
})

test('without the token nothing is answered but probes, whatever is asked', async () => {
  const token = 'a-long-token'
  await using started = await serveService({}, { token })
  const { url } = started.server
  const paths = ['/v1/rollouts/a', '/v1/events', '/metrics', '/health/', '/nowhere']
  const answers: unknown[] = []
  for (const path of paths) {
    for (const authorization of ['', 'Bearer', 'Bearer ', 'Bearer a-long-toke', `Basic ${token}`, `Bearer ${token}x`]) {
      answers.push(await answerOf(await fetch(url + path, { headers: { authorization } })))
    }
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toHaveLength(1)
  for (const path of ['/health', '/ready']) expect((await fetch(url + path)).status).toBe(200)
  expect(answers[0]).toMatchObject({ status: 401, body: { error: { code: 'SERVICE_UNAUTHORIZED' } } })
  expect((await started.client.submit(rolloutRequest('a'))).id).toBe('a')
})

test('a page in a browser gets nothing of a service on loopback that asks for no token, by any method', async () => {
  await using started = await serveService({ run: forever })
  const { url } = started.server
  const body = JSON.stringify(rolloutRequest('a'))
  const page = { origin: 'https://page.example' }
  for (const [path, init] of [
    ['/v1/rollouts', { method: 'POST', body, headers: { 'content-type': 'text/plain' } }],
    ['/v1/rollouts', { method: 'POST', body, headers: json }],
    ['/v1/rollouts/a', { method: 'DELETE' }],
    ['/v1/rollouts/a', {}],
    ['/v1/events', {}],
    ['/metrics', {}],
  ] as const) {
    const refused = await fetch(url + path, { ...init, headers: { ...('headers' in init && init.headers), ...page } })
    expect([path, await answerOf(refused)]).toMatchObject([path, { status: 403, body: { error: { code: 'HOST_REFUSED' } } }])
  }
  // A form cannot send JSON, whatever its browser says about the page.
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/plain; application/json']) {
    const refused = await fetch(`${url}/v1/rollouts`, { method: 'POST', body, headers: { 'content-type': type } })
    expect([type, await answerOf(refused)]).toMatchObject([
      type,
      { status: 415, body: { error: { message: expect.stringContaining('application/json') } } },
    ])
  }
  expect(started.service.counts()).toMatchObject({ queued: 0, running: 0 })
  await using guarded = await serveService({ run: forever }, { token: 'secret' })
  const allowed = { ...json, ...page, authorization: 'Bearer secret' }
  expect((await fetch(`${guarded.server.url}/v1/rollouts`, { method: 'POST', body, headers: allowed })).status).toBe(202)
})

test('beyond loopback a token and encryption are asked for', async () => {
  const { service } = startService()
  const open = (options: object) => createRolloutServer({ service, host: '0.0.0.0', ...options })
  await expect(open({})).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('set a token') })
  await expect(open({ token: 'secret' })).rejects.toMatchObject({ message: expect.stringContaining('without encryption') })
  const server = await open({ token: 'secret', insecure: true })
  await server.close()
  await service.close()
})

async function collect(events: AsyncIterable<RunEvent>, count = Number.POSITIVE_INFINITY): Promise<string[]> {
  const seen: string[] = []
  for await (const event of events) {
    seen.push('rollout' in event ? `${event.type} ${event.rollout}` : event.type)
    if (seen.length >= count) break
  }
  return seen
}

test('events of one rollout come in order and end with it, also to one that asks later', async () => {
  const go = Promise.withResolvers<void>()
  const store = memoryStore()
  await using started = await serveService({ store, before: () => go.promise })
  const { client } = started
  await client.submit(rolloutRequest('a'))
  await client.submit(rolloutRequest('b'))
  const { signal } = new AbortController()
  const early = collect(client.events({ rollout: 'a', signal }))
  const all = collect(client.events({ after: '', signal }), 6)
  await expect.poll(() => started.server.waiting()).toBe(2)
  go.resolve()
  const own = ['rollout-queued a', 'rollout-start a', 'rollout-end a']
  expect(await early).toEqual(own)
  expect((await all).sort()).toEqual([...own, ...own.map((each) => each.replace(/a$/, 'b'))].sort())
  expect(store.reads).toBe(0)
  expect(await collect(client.events({ rollout: 'a', signal }))).toEqual(own)
  expect(store.reads).toBe(1)
  await expect.poll(() => started.server.waiting()).toBe(0)
})

test('a stream goes on after Last-Event-ID; one of another process says that events were lost', async () => {
  await using started = await serveService()
  const { client, server } = started
  for (const key of ['a', 'b']) {
    await client.submit(rolloutRequest(key))
    await client.get(key, { waitMs: 30_000 })
  }
  const read = async (last: string, lines: number) => {
    const response = await fetch(`${server.url}/v1/events`, { headers: { 'last-event-id': last } })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text.split('\nevent: ').length > lines) break
    }
    return text
  }
  const whole = await read('', 6)
  const ids = [...whole.matchAll(/^id: (.+)$/gm)].map(([, id]) => id!)
  expect(ids).toHaveLength(6)
  const rest = await read(ids[3]!, 2)
  expect([...rest.matchAll(/^id: (.+)$/gm)].map(([, id]) => id)).toEqual(ids.slice(4))
  expect(await read('0000-3', 6)).toMatch(/event: events-lost/)
  await expect.poll(() => server.waiting()).toBe(0)
})

test('a client that hangs up while it waits leaves nothing behind', async () => {
  await using started = await serveService({ run: forever })
  const { server, service } = started
  service.submit(rolloutRequest('a'))
  const sockets = ['?wait=60s', '/events'].map((rest) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(`GET /v1/rollouts/a${rest} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    return socket
  })
  await expect.poll(() => server.waiting()).toBe(2)
  for (const socket of sockets) socket.destroy()
  await expect.poll(() => [server.waiting(), server.sockets()]).toEqual([0, 0])
  expect(service.counts()).toMatchObject({ queued: 0, running: 1 })
})

test('more that wait than allowed get 503, and others are served', async () => {
  await using started = await serveService({ run: forever }, { limits: { maxWaiting: 1 } })
  const { server, service, client } = started
  service.submit(rolloutRequest('a'))
  const gone = new AbortController()
  const waiting = fetch(`${server.url}/v1/rollouts/a?wait=60s`, { signal: gone.signal }).catch(() => 'gone')
  await expect.poll(() => server.waiting()).toBe(1)
  expect((await fetch(`${server.url}/v1/rollouts/a?wait=60s`)).status).toBe(503)
  expect((await client.get('a')).status).toBe('running')
  gone.abort()
  expect(await waiting).toBe('gone')
})

test('closing the server answers those that wait and ends streams', async () => {
  await using started = await serveService({ run: forever })
  const { server, service, client } = started
  service.submit(rolloutRequest('a'))
  const stream = collect(client.events({ after: '', signal: new AbortController().signal }))
  const waited = fetch(`${server.url}/v1/rollouts/a?wait=60s`).then(answerOf)
  await expect.poll(() => server.waiting()).toBe(2)
  await server.close()
  expect((await waited).body.status).toBe('running')
  expect(await stream).toEqual(['rollout-queued a', 'rollout-start a'])
})

test('a client runs rollouts as a runner does, and cancels those of an aborted signal', async () => {
  await using started = await serveService({
    before: async (task, context) => void (task.id === 'task-slow' && (await forever(task, context))),
  })
  const { client, service } = started
  const requests = ['a', 'b', 'c'].map((key) => rolloutRequest(key))
  const episodes = await client.runAll(requests, new AbortController().signal)
  expect(episodes.map(({ rollout }) => rollout)).toEqual(['a', 'b', 'c'])
  const controller = new AbortController()
  const slow = client.run(rolloutRequest('slow'), controller.signal)
  await expect.poll(() => service.counts().running).toBe(1)
  controller.abort()
  await expect(slow).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  await expect.poll(() => service.get('slow').status).toBe('cancelled')
})

test('a rollout whose service restarts begins again', async () => {
  const first = startService({ run: forever })
  const server = await createRolloutServer({ service: first.service })
  const port = Number(new URL(server.url).port)
  await using other = await serveService({}, {}, { url: server.url })
  const running = other.client.run(rolloutRequest('a'), AbortSignal.timeout(60_000))
  await expect.poll(() => first.service.counts().running).toBe(1)
  await server.close()
  await first.service.close()
  const second = startService({ store: first.store })
  const again = await createRolloutServer({ service: second.service, port })
  expect(await running).toMatchObject({ attempt: 1, stopReason: expect.any(String) })
  await again.close()
  await second.service.close()
})

test('a rollout that was cancelled stays so over a restart, and a client that waits for it does not submit it again', async () => {
  const store = memoryStore()
  const first = startService({ run: forever, store })
  const server = await createRolloutServer({ service: first.service })
  const port = Number(new URL(server.url).port)
  await using other = await serveService({}, {}, { url: server.url })
  const running = other.client.run(rolloutRequest('a'), AbortSignal.timeout(60_000))
  running.catch(() => {})
  await expect.poll(() => first.service.counts().running).toBe(1)
  // The answers to waiting requests are lost with the server.
  await server.close()
  expect(await first.service.cancel('a')).toMatchObject({ status: 'cancelled' })
  await first.service.close()
  const second = startService({ run: forever, store })
  const again = await createRolloutServer({ service: second.service, port })
  await expect(running).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  expect(await other.client.get('a')).toMatchObject({ status: 'cancelled', error: { code: 'ROLLOUT_CANCELLED' } })
  expect(second.service.counts()).toMatchObject({ queued: 0, running: 0 })
  await again.close()
  await second.service.close()
})

test('health, readiness and metrics are served, with the queue and without anything of a request', async () => {
  await using started = await serveService({ run: forever, concurrency: 1 }, { token: 'a-long-token' })
  const { server, service } = started
  const ask = (path: string) => fetch(server.url + path, { headers: { authorization: 'Bearer a-long-token' } })
  await fetch(`${server.url}/metrics`)
  for (const key of ['a-secret-name', 'b', 'c']) service.submit(rolloutRequest(key))
  await expect.poll(() => service.counts().running).toBe(1)
  await service.cancel('c')
  expect(await answerOf(await ask('/health'))).toMatchObject({ status: 200, body: { status: 'ok' } })
  expect((await ask('/ready')).status).toBe(200)
  const answer = await ask('/metrics')
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain/)
  const text = await answer.text()
  const prefix = 'aworld_train_rollout_service_'
  for (const line of [
    'rollouts{status="queued"} 1',
    'rollouts{status="running"} 1',
    'rollouts{status="cancelled"} 1',
    'refused{reason="unauthorized"} 1',
    'stopping 0',
  ])
    expect(text).toContain(`${prefix}${line}\n`)
  expect(text).toMatch(/oldest_queued_seconds [\d.]+\n/)
  expect(text).not.toContain('a-secret-name')
  void service.drain(AbortSignal.abort())
  const stopping = await ask('/ready')
  expect([stopping.status, stopping.headers.get('retry-after')]).toEqual([503, null])
})

test('an episode that cannot be trained is answered without samples and with the reason, and a reader of its events survives it', async () => {
  await using started = await serveService()
  const { client, server } = started
  const request = rolloutRequest('a')
  await client.submit({ ...request, sampling: { ...request.sampling, topP: 0.9 } })
  const events = await fetch(`${server.url}/v1/rollouts/a/events`)
  expect(await events.text()).toMatch(/event: rollout-end(?:.|\n)*event: rollout-state\ndata: .*"status":"done".*top-p 0\.9/)
  const state = await client.get('a', { waitMs: 30_000 })
  expect(state).toMatchObject({ status: 'done', samples: [], error: { code: 'CONFIG_INVALID' }, episode: { stopReason: 'completed' } })
})
