import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { rawPost, statusesIn, talk } from '../testing/raw-socket.ts'
import { post, type Started, sessionRequest, startGateway, until } from '../testing/start-gateway.ts'

const user = { role: 'user', content: 'Hi.' }
const whole = JSON.stringify({ messages: [user] })
const pathOf = ({ gateway }: Started) => `${new URL(gateway.open(sessionRequest()).endpoint('agent').baseUrl).pathname}/chat/completions`

async function refusedBy(started: Started, reason: string): Promise<number> {
  const text = await started.gateway.metrics()
  return Number(new RegExp(`refused_total\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1])
}

const open = { say: () => 'Fine.' } as const

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

test('a page that made its own name lead here reaches nobody, and the name in the public URL is no such page', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  other.close()
  await using started = await startGateway({ say: [], port, publicUrl: 'https://gateway.example:8443' })
  const statusOf = async (host: string) => {
    const { received, closed } = talk(`http://127.0.0.1:${port}`, `GET /v1/models HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    await until(closed)
    return statusesIn(received())
  }
  expect([await statusOf('evil.example'), await statusOf('gateway.example'), await statusOf('127.0.0.1')]).toEqual([[421], [200], [200]])
  expect(await refusedBy(started, 'wrong-host')).toBe(1)
})

test('what is not a request, or is two at once, is refused and closed; nothing of it is served', async () => {
  await using started = await startGateway(open)
  const path = pathOf(started)
  const smuggled = `GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n`
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\n`
  const chunked = `${whole.length.toString(16)}\r\n${whole}\r\n0\r\n\r\n`
  const cases: Readonly<Record<string, string>> = {
    'content-length and transfer-encoding': `${head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'the same, turned around': `${head}transfer-encoding: chunked\r\ncontent-length: ${chunked.length}\r\n\r\n${chunked}${smuggled}`,
    'two lengths': `${head}content-length: 4\r\ncontent-length: ${smuggled.length}\r\n\r\n${smuggled}`,
    'a length with a sign': `${head}content-length: +5\r\n\r\n12345${smuggled}`,
    'a length that is no number': `${head}content-length: 5x\r\n\r\n12345${smuggled}`,
    'a space before the colon': `${head}transfer-encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'an encoding after chunked': `${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    'an encoding like chunked': `${head}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'a chunk whose size is no number': `${head}transfer-encoding: chunked\r\n\r\nzz\r\n${smuggled}`,
    'a chunk longer than it says': `${head}transfer-encoding: chunked\r\n\r\n2\r\n${whole}\r\n0\r\n\r\n`,
    'a NUL in a header': `${head}x-a: a\0b\r\n\r\n${smuggled}`,
    'a header without a name': `${head}: a\r\n\r\n${smuggled}`,
    'a strange version': `POST ${path} HTTP/9.9\r\nhost: localhost\r\n\r\n${smuggled}`,
    'a strange method': `NONSENSE ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n${smuggled}`,
    'TLS to a plain port': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  }
  for (const [name, text] of Object.entries(cases)) {
    const { received, closed, socket } = talk(started.gateway.url, text)
    await until(closed)
    expect([name, statusesIn(received())]).toEqual([name, [400]])
    socket.destroy()
  }
  expect(await refusedBy(started, 'not-http')).toBe(Object.keys(cases).length)
  expect(started.gateway.counts()).toMatchObject({ calls: 0, inFlight: 0 })
})

test('another protocol is not switched to, and nothing is tunnelled', async () => {
  await using started = await startGateway(open)
  const upgrade = talk(started.gateway.url, 'GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  const h2c = talk(started.gateway.url, 'GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n')
  const connect = talk(started.gateway.url, 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n')
  const proxy = talk(started.gateway.url, 'GET http://example.com/health HTTP/1.1\r\nhost: example.com\r\n\r\n')
  await until(connect.closed)
  await until(() => [upgrade, h2c, proxy].every(({ received }) => received() !== ''))
  expect([upgrade, h2c, connect, proxy].map(({ received }) => statusesIn(received()))).toEqual([[200], [200], [], [421]])
  for (const { socket } of [upgrade, h2c, connect, proxy]) socket.destroy()
})

test('requests on one socket are answered in order, also when they came in one piece', async () => {
  const slowFirst = Promise.withResolvers<void>()
  await using started = await startGateway({
    say: (_, call) => ({ text: `answer ${call}`, beforeToken: () => (call === 0 ? slowFirst.promise : undefined) }),
  })
  const path = pathOf(started)
  const { received, socket } = talk(started.gateway.url, rawPost(path, whole) + rawPost('/nowhere', '') + rawPost(path, whole))
  await until(() => started.engine.requests.length === 2)
  expect(received()).toBe('')
  slowFirst.resolve()
  await until(() => statusesIn(received()).length === 3)
  expect(statusesIn(received())).toEqual([200, 404, 200])
  expect(received().indexOf('answer 0')).toBeLessThan(received().indexOf('answer 1'))
  socket.destroy()
})

test('a client that only drips its headers or its body is cut off in time, and others are served meanwhile', async () => {
  const limits = { headersTimeoutMs: 3_000, requestTimeoutMs: 4_000, keepAliveTimeoutMs: 1_000 }
  await using started = await startGateway({ ...open, limits })
  const path = pathOf(started)
  const sockets = Array.from({ length: 100 }, (_, index) =>
    talk(
      started.gateway.url,
      index % 2 === 0 ? `POST ${path} HTTP/1.1\r\n` : `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000\r\n\r\n`,
    ),
  )
  const drip = setInterval(() => {
    for (const { socket } of sockets) if (socket.writable) socket.write('a')
  }, 20)
  const endpoint = started.gateway.open(sessionRequest({ rollout: 'other' })).endpoint('agent')
  for (let call = 0; call < 5; call++) expect((await post(endpoint, { messages: [user] })).status).toBe(200)
  await until(() => sockets.every(({ closed }) => closed()))
  clearInterval(drip)
  for (const { received, socket } of sockets) {
    expect(statusesIn(received())).toEqual([408])
    socket.destroy()
  }
  expect(await refusedBy(started, 'timeout')).toBe(100)
})

test('a flood of headers and a long URL are refused by their bytes', async () => {
  await using started = await startGateway(open)
  const flood = Array.from({ length: 5_000 }, (_, index) => `x-${index}: ${index}`).join('\r\n')
  for (const text of [
    `GET /health HTTP/1.1\r\nhost: localhost\r\n${flood}\r\n\r\n`,
    `GET /r/${'a'.repeat(100_000)}/v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n`,
  ]) {
    const { received, closed, socket } = talk(started.gateway.url, text)
    await until(closed)
    expect(statusesIn(received())).toEqual([431])
    socket.destroy()
  }
  expect(await refusedBy(started, 'headers-too-large')).toBe(2)
})

test('more sockets than allowed are closed at once, counted, and room is made when others leave', async () => {
  await using started = await startGateway({ ...open, limits: { maxSockets: 3 } })
  const { url } = started.gateway
  const health = 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const sockets = [talk(url, health), talk(url, health), talk(url, health)]
  await until(() => sockets.every(({ received }) => statusesIn(received()).length === 1))
  const refused = talk(url, health)
  await until(refused.closed)
  expect(refused.received()).toBe('')
  sockets[0]!.socket.destroy()
  await expect
    .poll(async () => {
      const next = talk(url, health)
      await until(() => next.closed() || next.received() !== '')
      next.socket.destroy()
      return statusesIn(next.received())
    })
    .toEqual([200])
  for (const { socket } of sockets) socket.destroy()
  await expect.poll(() => refusedBy(started, 'too-many-sockets').catch(() => 0)).toBeGreaterThanOrEqual(1)
})

test('a client that ends its side while it waits has hung up: the engine is aborted', async () => {
  await using started = await startGateway({ say: () => ({ text: 'a long answer that takes its time', pieceDelayMs: 5 }) })
  const { gateway, engine } = started
  const { socket } = talk(gateway.url, rawPost(pathOf(started), whole))
  await until(() => engine.sampledTokens() > 0)
  socket.end()
  await until(() => engine.aborted() === 1 && gateway.counts().inFlight === 0)
  socket.destroy()
})

for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
  test(`a client that leaves after half a body is counted once and forgotten (${leave})`, async () => {
    await using started = await startGateway(open)
    const head = `POST ${pathOf(started)} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"messages"`
    const { socket } = talk(started.gateway.url, head)
    await expect.poll(() => started.gateway.metrics()).toMatch(/\naworld_train_gateway_sockets 1\n/)
    await new Promise((resolve) => setTimeout(resolve, 20))
    socket[leave]()
    await expect.poll(() => started.gateway.metrics()).toMatch(/\naworld_train_gateway_sockets 0\n/)
    await expect.poll(() => refusedBy(started, 'incomplete')).toBe(1)
    expect(started.gateway.counts()).toMatchObject({ calls: 0, inFlight: 0 })
    socket.destroy()
  })
}

test('a thousand clients hang up in the middle of their streams, wave after wave', async () => {
  const clients = 1_000
  const waves = 2
  const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  await using started = await startGateway({
    say: ({ random }) =>
      random.task === 'other'
        ? { text: 'undisturbed', pieceDelayMs: 10 }
        : { text: 'half', beforeToken: (index, signal) => (index === 1 ? untilAborted(signal) : undefined) },
  })
  const { gateway, engine } = started
  const other = gateway.open(sessionRequest({ rollout: 'other', taskId: 'other' })).endpoint('agent')
  const body = JSON.stringify({ messages: [user], stream: true })
  const heap: number[] = []
  for (let wave = 0; wave < waves; wave++) {
    const session = gateway.open(sessionRequest({ rollout: `wave-${wave}` }))
    const path = `${new URL(session.endpoint('agent').baseUrl).pathname}/chat/completions`
    const before = engine.aborted()
    const sockets = Array.from({ length: clients }, () => talk(gateway.url, rawPost(path, body)))
    await until(() => sockets.every(({ received }) => received().includes('data: ')))
    const undisturbed = post(other, { messages: [user] })
    for (const { socket } of sockets) socket.destroy()
    await until(() => engine.aborted() === before + clients)
    const answer = await undisturbed
    expect([answer.status, answer.json().choices[0].message.content]).toEqual([200, 'undisturbed'])
    await until(() => gateway.counts().inFlight === 0 && engine.inFlight() === 0)
    const turns = (await session.close())[0]!.turns
    expect(turns.length).toBe(clients)
    expect(new Set(turns.map(({ delivered }) => delivered))).toEqual(new Set(['abandoned']))
    await until(() => sockets.every(({ socket }) => socket.closed))
    // The double keeps every request, and with it all that the call's callback references.
    ;(engine.requests as unknown[]).length = 0
    collectGarbage()
    heap.push(process.memoryUsage().heapUsed)
  }
  await until(() => engine.inFlight() === 0)
  expect(heap.at(-1)! - heap[0]!).toBeLessThan(4 * 1024 * 1024)
  const metrics = await gateway.metrics()
  expect(metrics).toContain(`outcome="client-closed",code=""} ${waves * clients}\n`)
  expect(metrics).toMatch(/\naworld_train_gateway_in_flight 0\n/)
  await expect.poll(async () => Number(/\naworld_train_gateway_sockets (\d+)/.exec(await gateway.metrics())?.[1])).toBeLessThan(4)
})
