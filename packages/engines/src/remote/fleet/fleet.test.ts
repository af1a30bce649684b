import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { quickFleet, send } from '../testing/fleet-calls.ts'
import { type Route, sendJson, type TestServer } from '../testing/http-server.ts'
import { createToyVllm, type ToyServer } from '../testing/vllm-server.ts'
import type { Fleet, FleetEvent, FleetOptions } from './fleet-types.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

/** Toy servers that answer `/answer` by a route of the test, and a fleet over them. */
async function serve(count: number, answer: Route, options: Omit<FleetOptions, 'replicas'> = {}) {
  const servers: ToyServer[] = []
  for (let index = 0; index < count; index++) {
    const server = await createToyVllm()
    server.answer((request, response) => (request.path === '/answer' ? answer(request, response) : server.route(request, response)))
    servers.push(server)
  }
  const events: FleetEvent[] = []
  const fleet = await quickFleet(
    servers.map(({ url }) => url),
    { ...options, onEvent: (event) => events.push(event) },
  )
  closers.push(() => fleet.close(), ...servers.map((server) => () => server.close()))
  return { servers, fleet, events }
}

const signal = new AbortController().signal
const answered = ({ seen }: TestServer) => seen.filter(({ path }) => path === '/answer').length
const fine: Route = (_request, response) => sendJson(response, 200, { fine: true })
const idle = (fleet: Fleet) => expect(fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })

/** A route that answers when the test lets it. */
function gate() {
  const open: (() => void)[] = []
  const route: Route = (_request, response) => void open.push(() => sendJson(response, 200, { fine: true }))
  const answer = (count = open.length) => {
    for (const each of open.splice(0, count)) each()
  }
  return { route, waiting: () => open.length, let: answer }
}

describe('places', () => {
  test('spread over servers at first use and stay with one', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet, servers } = await serve(3, route)
    const rollouts = ['a', 'b', 'c', 'd', 'e', 'f']
    const first = rollouts.map((affinity) => send(fleet, { affinity }))
    await expect.poll(() => waiting()).toBe(6)
    expect(servers.map(answered)).toEqual([2, 2, 2])
    open()
    const homes = (await Promise.all(first)).map(({ outcome }) => outcome.replica)
    for (let turn = 0; turn < 3; turn++) {
      const calls = rollouts.map((affinity) => send(fleet, { affinity }))
      await expect.poll(() => waiting()).toBe(6)
      open()
      expect((await Promise.all(calls)).map(({ outcome }) => outcome.replica)).toEqual(homes)
    }
    expect(fleet.counts()).toMatchObject({ inFlight: 0, moves: 0, sessions: 6 })
  })

  test('spread also where calls follow each other', async () => {
    const { fleet, servers } = await serve(2, fine)
    for (const affinity of ['a', 'b', 'c', 'd']) await send(fleet, { affinity })
    expect(servers.map(answered)).toEqual([2, 2])
  })

  test('are bounded, and calls wait in order of arrival', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet } = await serve(1, route, { maxInFlight: 2 })
    const done: number[] = []
    const calls = [0, 1, 2, 3, 4].map((index) => send(fleet, { affinity: `${index}` }).then(() => done.push(index)))
    await expect.poll(() => waiting()).toBe(2)
    expect(fleet.counts()).toMatchObject({ inFlight: 2, waiting: 3 })
    for (let index = 0; index < 5; index++) {
      await expect.poll(() => waiting()).toBeGreaterThan(0)
      open(1)
    }
    await Promise.all(calls)
    expect(done).toEqual([0, 1, 2, 3, 4])
    idle(fleet)
  })

  test('are refused with a typed error once too many wait', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet } = await serve(1, route, { maxInFlight: 1, maxWaiting: 1 })
    const calls = [send(fleet), send(fleet)]
    await expect.poll(() => waiting()).toBe(1)
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_RATE_LIMITED', message: expect.stringContaining('maxWaiting') })
    open()
    await expect.poll(() => waiting()).toBe(1)
    open()
    await Promise.all(calls)
  })

  test('are given up by a call that is aborted while it waits', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet } = await serve(1, route, { maxInFlight: 1 })
    const first = send(fleet)
    await expect.poll(() => waiting()).toBe(1)
    const controller = new AbortController()
    const second = send(fleet, { signal: controller.signal })
    const third = send(fleet)
    controller.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    open()
    await first
    await expect.poll(() => waiting()).toBe(1)
    open()
    await third
    idle(fleet)
  })

  test('move from a server that is drained, and come back to it when it is restored', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet, servers, events } = await serve(2, route)
    const first = send(fleet, { affinity: 'a' })
    await expect.poll(() => waiting()).toBe(1)
    const [home, other] = servers as [ToyServer, ToyServer]
    let drained = false
    const drain = fleet.drain(home.url, new AbortController().signal).then(() => {
      drained = true
    })
    const second = send(fleet, { affinity: 'a' })
    await expect.poll(() => waiting()).toBe(2)
    expect(drained).toBe(false)
    open()
    expect((await first).outcome.replica).toBe(home.url)
    expect((await second).outcome.replica).toBe(other.url)
    await drain
    expect(events).toContainEqual({ type: 'replica-out', server: home.url, reason: 'draining' })
    fleet.restore(home.url)
    const third = send(fleet, { affinity: 'b' })
    await expect.poll(() => waiting()).toBe(1)
    open()
    expect((await third).outcome.replica).toBe(home.url)
    idle(fleet)
  })

  test('are had elsewhere by a call that waits for a server which goes', async () => {
    const { route, let: open, waiting } = gate()
    const { fleet, servers } = await serve(2, route, { maxInFlight: 2 })
    const calls = [send(fleet, { affinity: 'a' }), send(fleet, { affinity: 'b' }), send(fleet, { affinity: 'a' })]
    await expect.poll(() => waiting()).toBe(3)
    const home = servers.findIndex((server) => answered(server) === 2)
    const waiter = send(fleet, { affinity: 'a' })
    expect(fleet.counts()).toMatchObject({ inFlight: 3, waiting: 1 })
    void fleet.drain(servers[home]!.url, signal)
    await expect.poll(() => waiting()).toBe(4)
    open()
    expect((await waiter).outcome.replica).toBe(servers[1 - home]!.url)
    await Promise.all(calls)
    idle(fleet)
  })
})

describe('a server that goes', () => {
  test('is left at once, its call is sent to another, and it is taken back when it is well', async () => {
    const { fleet, servers, events } = await serve(2, fine)
    const [home, other] = servers as [ToyServer, ToyServer]
    expect((await send(fleet, { affinity: 'a' })).outcome.replica).toBe(home.url)
    await home.die()
    // Idle sockets to it may still be open, and a call on one of them is a call on a closing socket.
    expect((await send(fleet, { affinity: 'a' })).outcome.replica).toBe(other.url)
    await expect.poll(() => fleet.replicas()[0]!.out).toBe('unhealthy')
    expect((await send(fleet, { affinity: 'a' })).outcome.replica).toBe(other.url)
    await home.rise()
    await expect.poll(() => fleet.replicas()[0]!.out).toBeNull()
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['replica-out', 'replica-back']))
    // The rollout stays on its new replica.
    expect((await send(fleet, { affinity: 'a' })).outcome.replica).toBe(other.url)
    idle(fleet)
  })

  test('alone is waited for', async () => {
    const { fleet, servers } = await serve(1, fine)
    const [only] = servers as [ToyServer]
    await only.die()
    await expect.poll(() => fleet.replicas()[0]!.out).toBe('unhealthy')
    const early = send(fleet)
    await only.rise()
    expect((await early).text).toContain('fine')
    idle(fleet)
  })

  test('alone is waited for a while only', async () => {
    const { fleet, servers } = await serve(1, fine, { unavailableMs: 200 })
    await servers[0]!.die()
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('No server is well') })
    idle(fleet)
  })

  test('was not there at the start and comes later', async () => {
    const server = await createToyVllm()
    await server.die()
    const fleet = await quickFleet([server.url])
    closers.push(
      () => fleet.close(),
      () => server.close(),
    )
    expect(fleet.replicas()).toMatchObject([{ out: 'unhealthy' }])
    const call = send(fleet, { path: '/reset_prefix_cache' })
    await sleep(50)
    await server.rise()
    expect((await call).text).toContain('success')
  })

  test.each<readonly [string, Route]>([
    ['with 500', (_request, response) => void response.writeHead(500).end()],
    ['with nothing', () => {}],
  ])('answers probes %s three times before it is out', async (_how, answer) => {
    let sick = false
    const server = await createToyVllm()
    server.answer((request, response) => (sick && request.path === '/health' ? answer(request, response) : server.route(request, response)))
    const fleet = await quickFleet([server.url], { probeIntervalMs: 30, probeTimeoutMs: 1_000 })
    closers.push(
      () => fleet.close(),
      () => server.close(),
    )
    sick = true
    const before = server.seen.filter(({ path }) => path === '/health').length
    await expect.poll(() => fleet.replicas()[0]!.out).toBe('unhealthy')
    expect(server.seen.filter(({ path }) => path === '/health').length - before).toBeGreaterThanOrEqual(3)
    sick = false
    await expect.poll(() => fleet.replicas()[0]!.out).toBeNull()
  })
})

describe('a call', () => {
  test('is sent once more where the server answers 503 before anything else, once', async () => {
    let left = 1
    const { fleet, servers, events } = await serve(1, (_request, response) =>
      left-- > 0 ? sendJson(response, 503, { error: { message: 'starting' } }) : sendJson(response, 200, { fine: true }),
    )
    expect((await send(fleet)).text).toContain('fine')
    expect(fleet.counts()).toMatchObject({ retries: 1, failures: 0 })
    expect(events).toContainEqual({ type: 'call-retried', server: servers[0]!.url, why: expect.stringContaining('starting') })
    left = 2
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', details: { status: 503 } })
    expect(answered(servers[0]!)).toBe(4)
    idle(fleet)
  })

  test('is not sent again once a byte of its answer came', async () => {
    const { fleet, servers } = await serve(2, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"half":')
      setTimeout(() => response.destroy(), 10)
    })
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('in the middle') })
    expect(answered(servers[0]!) + answered(servers[1]!)).toBe(1)
    idle(fleet)
  })

  test('is not sent again where a fresh connection closes without an answer: it may be generating', async () => {
    const { fleet, servers } = await serve(2, (_request, response) => void response.destroy())
    await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('without an answer') })
    expect(answered(servers[0]!) + answered(servers[1]!)).toBe(1)
    idle(fleet)
  })

  test('that is aborted closes its connection, and the next one has the place', async () => {
    const { fleet, servers } = await serve(1, (_request, response) => void response.writeHead(200).write('begin'), { maxInFlight: 4 })
    const before = servers[0]!.aborted()
    for (let wave = 0; wave < 8; wave++) {
      const controller = new AbortController()
      const calls = [0, 1, 2, 3].map(() => send(fleet, { signal: controller.signal }))
      await expect.poll(() => answered(servers[0]!)).toBe(4 * (wave + 1))
      controller.abort(new Error('gone'))
      expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
    }
    await expect.poll(() => servers[0]!.aborted() - before).toBe(32)
    idle(fleet)
  })

  test('goes out with the key and says what it wants', async () => {
    const { fleet, servers } = await serve(1, fine, { apiKey: 'secret' })
    await send(fleet)
    const { headers } = servers[0]!.seen.find(({ path }) => path === '/answer')!
    expect(headers).toMatchObject({ authorization: 'Bearer secret', 'content-type': 'application/json' })
    expect(servers[0]!.seen.filter(({ path }) => path === '/health')[0]!.headers).toMatchObject({ authorization: 'Bearer secret' })
  })

  test.each([10, 100_000])('of %d bytes arrives as it is, also a second time', async (size) => {
    let left = 1
    const { fleet, servers } = await serve(1, (_request, response) =>
      left-- > 0 ? sendJson(response, 503, {}) : sendJson(response, 200, { fine: true }),
    )
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(size, 'ü'), Buffer.from('"}')])
    await fleet.send({ path: '/answer', affinity: 'a', stream: false, body: () => body }, { onHead() {}, onData: () => true }, signal)
    const arrived = servers[0]!.seen.filter(({ path }) => path === '/answer')
    expect(arrived.map(({ text }) => text)).toEqual(Array(2).fill(body.toString('utf8')))
    expect(arrived[0]!.headers['content-length']).toBe(`${size + 8}`)
  })

  test('waits for its reader', async () => {
    const { fleet } = await serve(1, (_request, response) => void response.writeHead(200).end(Buffer.alloc(4_000_000)))
    let bytes = 0
    let resume = () => {}
    const call = fleet.send(
      { path: '/answer', affinity: 'a', stream: false, body: () => '{}' },
      {
        onHead() {},
        onData(chunk, go) {
          bytes += chunk.length
          resume = go
          return false
        },
      },
      new AbortController().signal,
    )
    await expect.poll(() => bytes).toBeGreaterThan(0)
    await sleep(30)
    expect(bytes).toBeLessThan(200_000)
    const pump = setInterval(() => resume(), 1)
    await call
    clearInterval(pump)
    expect(bytes).toBe(4_000_000)
  })
})

test('idle sockets are closed before the server would', async () => {
  const { fleet, servers } = await serve(1, fine, { keepAliveMs: 300, probeIntervalMs: 60_000 })
  await send(fleet)
  await expect.poll(() => servers[0]!.sockets()).toBe(0)
})

test('a server that keeps idle sockets for a shorter time is heeded', async () => {
  const brief: Route = (_request, response) => sendJson(response, 200, {}, { connection: 'keep-alive', 'keep-alive': 'timeout=1' })
  const { fleet, servers } = await serve(1, brief, { keepAliveMs: 60_000, probeIntervalMs: 60_000 })
  const probed = servers[0]!.sockets()
  await send(fleet)
  await expect.poll(() => servers[0]!.sockets()).toBe(probed)
})

test('a server that closes an idle socket unannounced is asked at once how it is', async () => {
  const sockets: Socket[] = []
  const noticed: Route = (_request, response) => {
    sockets.push(response.socket!)
    sendJson(response, 200, {})
  }
  const { fleet, servers } = await serve(1, noticed, { keepAliveMs: 60_000, probeIntervalMs: 60_000 })
  await send(fleet)
  const probes = () => servers[0]!.seen.filter(({ path }) => path === '/health').length
  const before = probes()
  sockets[0]!.destroy()
  await expect.poll(() => probes()).toBe(before + 1)
})

const local = 'http://127.0.0.1:1'
test.each([[[]], [['not a url']], [['ftp://127.0.0.1']], [[local, local]]])('servers %j are refused', async (replicas) => {
  await expect(quickFleet(replicas)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})

test.each([{ maxInFlight: 0 }, { maxWaiting: -1 }, { probeIntervalMs: 0 }, { keepAliveMs: Number.NaN }])(
  'limits %j are refused',
  async (limits) => {
    await expect(quickFleet([local], limits)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining(Object.keys(limits)[0]!),
    })
  },
)

test('a key that would begin another header is refused', async () => {
  const fleet = quickFleet([local], { apiKey: 'a\r\nx: y' })
  await expect(fleet).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('apiKey') })
})

test('a name at none of whose addresses a server listens is said to be refused', async () => {
  const { fleet, servers } = await serve(1, fine)
  const byName = await quickFleet([servers[0]!.url.replace('127.0.0.1', 'localhost')], { probeIntervalMs: 60_000 })
  closers.push(() => byName.close())
  await fleet.close()
  await servers[0]!.close()
  await expect(send(byName)).rejects.toThrow(/could not be reached: .*ECONNREFUSED/)
})

test('closing rejects what waits and what is in flight', async () => {
  const { fleet } = await serve(1, () => {}, { maxInFlight: 1 })
  const calls = [send(fleet), send(fleet)].map((call) => call.catch((error: unknown) => error))
  await expect.poll(() => fleet.counts()).toMatchObject({ inFlight: 1, waiting: 1 })
  await fleet.close()
  for (const error of await Promise.all(calls)) expect(error).toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  await expect(send(fleet)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  idle(fleet)
})
