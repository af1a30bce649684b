import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import type { FleetEvent } from '../fleet/fleet-types.ts'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { sendJson } from '../testing/http-server.ts'
import { createToySglang } from '../testing/sglang-server.ts'
import { toyModel, toyRecompute } from '../testing/toy-policy.ts'
import { createToyVllm, type ToyServer } from '../testing/vllm-server.ts'
import { createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { createWeightUpdater, type WeightUpdaterOptions } from './weight-updater.ts'

type Kind = 'vllm' | 'vllm-completions' | 'sglang'
const signal = new AbortController().signal
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function open(kind: Kind, count = 2, limits: { unavailableMs?: number; probeIntervalMs?: number } = {}) {
  const servers: ToyServer[] = []
  for (let index = 0; index < count; index++) servers.push(await (kind === 'sglang' ? createToySglang() : createToyVllm()))
  const events: FleetEvent[] = []
  const options = {
    replicas: servers.map(({ url }) => url),
    model: toyModel,
    streamInterval: 1,
    probeIntervalMs: 20,
    unavailableMs: 30_000,
    ...limits,
    onEvent: (event: FleetEvent) => void events.push(event),
  }
  const engine: RemoteTokenEngine =
    kind === 'sglang'
      ? await createSglangTokenEngine(options)
      : await createVllmTokenEngine({ ...options, route: kind === 'vllm' ? 'generate' : 'completions' })
  closers.push(() => engine.close(), ...servers.map((server) => () => server.close()))
  return { servers, engine, events }
}

const checked = (engine: RemoteTokenEngine, weights: number): WeightUpdaterOptions['check'] => ({
  engine,
  prompts: [Int32Array.of(5, 6, 7), Int32Array.of(8)],
  tolerance: 1e-3,
  recompute: toyRecompute(weights),
})
const idle = ({ fleet }: RemoteTokenEngine) => expect(fleet.counts()).toMatchObject({ inFlight: 0, waiting: 0 })
/** A call with a long completion: 63 stops, and these seeds draw none for a while. */
const long = (turn: number, maxTokens = 24) =>
  toyCall({ affinity: `${turn}`, random: { seed: 5, task: 'long', sample: 0, turn }, sampling: { ...toyCall().sampling, maxTokens } })

describe.each<Kind>(['vllm', 'vllm-completions', 'sglang'])('an update of %s', (kind) => {
  test('reaches every server, is checked there, and shows in what is sampled', async () => {
    const { engine, servers, events } = await open(kind)
    const report = await createWeightUpdater({ fleet: engine.fleet, check: checked(engine, 1) }).publish({
      version: 1,
      directory: '/weights-1',
    })
    expect(report.replicas).toEqual(servers.map(({ url }) => ({ server: url, error: null, difference: expect.any(Number) })))
    for (const { difference } of report.replicas) expect(difference).toBeLessThan(1e-6)
    for (const { state } of servers) expect(state).toMatchObject({ label: '1', weights: 1, paused: false })
    expect(engine.weightVersion()).toBe(1)
    expect(engine.sampledTokens()).toBe(0)
    const { weightVersions } = await engine.generate(toyCall(), signal)
    expect(weightVersions).toEqual([{ fromToken: 0, version: 1 }])
    expect(events.filter(({ type }) => type === 'weights-published')).toHaveLength(2)
    const routes = kind === 'sglang' ? '/generate' : kind === 'vllm' ? '/inference/v1/generate' : '/v1/completions'
    expect(
      servers
        .flatMap(({ seen }) => seen)
        .filter(({ path }) => path === routes)
        .at(-1)!.json['cache_salt'],
    ).toBe('1')
    idle(engine)
  })

  test('that a server does not carry out is found out, and nothing is sampled there', async () => {
    const { engine, servers } = await open(kind)
    // The server reports that it loaded the weights, but continues with its old ones.
    const [liar] = servers as [ToyServer, ToyServer]
    liar.state.load = () => 0
    const updater = createWeightUpdater({ fleet: engine.fleet, check: checked(engine, 1) })
    await expect(updater.publish({ version: 1, directory: '/weights-1' })).rejects.toMatchObject({
      code: 'POLICY_STALE_WEIGHTS',
      message: expect.stringContaining(liar.url),
    })
    expect(engine.fleet.replicas().map(({ out }) => out)).toEqual(['stale', null])
    const before = liar.seen.filter(({ path }) => /generate|completions/.test(path)).length
    for (const affinity of ['a', 'b', 'c']) await engine.generate(toyCall({ affinity }), signal)
    expect(liar.seen.filter(({ path }) => /generate$|completions/.test(path)).length).toBe(before)
    idle(engine)
  })

  test('waits for calls in flight where they are drained, and holds new ones', async () => {
    const { engine, servers } = await open(kind, 1)
    servers[0]!.state.delayMs = 50
    const first = engine.generate(long(1), signal)
    await expect.poll(() => servers[0]!.state.running()).toBe(1)
    const update = createWeightUpdater({ fleet: engine.fleet }).publish({ version: 1, directory: '/weights-1' })
    await sleep(10)
    const second = engine.generate(long(2, 2), signal)
    expect(servers[0]!.state.label).toBe('default')
    servers[0]!.state.delayMs = 0
    expect(await first).toMatchObject({ weightVersions: [{ fromToken: 0, version: 0 }] })
    await update
    expect(await second).toMatchObject({ weightVersions: [{ fromToken: 0, version: 1 }] })
    idle(engine)
  })

  test('cuts calls in flight where they are aborted: what they sampled stays', async () => {
    const { engine, servers } = await open(kind, 1)
    servers[0]!.state.delayMs = 50
    const first = engine.generate(long(1), signal)
    await expect.poll(() => engine.sampledTokens()).toBeGreaterThan(2)
    await createWeightUpdater({ fleet: engine.fleet, inFlight: 'abort' }).publish({ version: 1, directory: '/weights-1' })
    const { finishReason, tokenIds } = await first
    expect(finishReason).toEqual({ unified: 'aborted', raw: 'abort' })
    expect(tokenIds.length).toBe(engine.sampledTokens())
    idle(engine)
  })

  test('shows at its token in a call that is kept, or marks the call mixed', async () => {
    const { engine, servers } = await open(kind, 1)
    servers[0]!.state.delayMs = 50
    const call = engine.generate(long(1), signal)
    await expect.poll(() => engine.sampledTokens()).toBeGreaterThan(2)
    await createWeightUpdater({ fleet: engine.fleet, inFlight: 'keep' }).publish({ version: 1, directory: '/weights-1' })
    servers[0]!.state.delayMs = 0
    const { weightVersions, mixedVersions, tokenIds, logprobs } = await call
    if (kind === 'vllm-completions') {
      expect(weightVersions).toEqual([{ fromToken: 0, version: 0 }])
      expect(mixedVersions).toEqual({ lowest: 0, highest: 1 })
      return
    }
    expect(mixedVersions).toBeUndefined()
    expect(weightVersions).toEqual([
      { fromToken: 0, version: 0 },
      { fromToken: expect.any(Number), version: 1 },
    ])
    const from = weightVersions[1]!.fromToken
    const row = Int32Array.of(...long(1).promptTokenIds, ...tokenIds)
    for (const [index, logprob] of logprobs.entries()) {
      const [values] = await toyRecompute(index < from ? 0 : 1)([row], 1)
      expect(logprob).toBeCloseTo(values![3 + index]!, 6)
    }
  })

  test('of an adapter is sampled under its name', async () => {
    const { engine, servers } = await open(kind)
    const updater = createWeightUpdater({ fleet: engine.fleet, check: checked(engine, 9) })
    await updater.publish({ version: 4, directory: '/adapter-9', policy: 'helper' })
    const named = await engine.generate(toyCall({ policy: 'helper' }), signal)
    const base = await engine.generate(toyCall(), signal)
    expect(named.weightVersions).toEqual([{ fromToken: 0, version: 4 }])
    expect(base.weightVersions).toEqual([{ fromToken: 0, version: 0 }])
    expect(Array.from(named.logprobs)).not.toEqual(Array.from(base.logprobs))
    const salts = servers.flatMap(({ seen }) => seen).flatMap(({ json }) => json['cache_salt'] ?? [])
    expect([...new Set(salts)].sort()).toEqual(['0', expect.stringMatching(/^[0-9a-f]{16}\.4$/)])
    // The second updater replaces the first.
    await createWeightUpdater({ fleet: engine.fleet, check: checked(engine, 10) }).publish({
      version: 5,
      directory: '/adapter-10',
      policy: 'helper',
    })
    expect((await engine.generate(toyCall({ policy: 'helper' }), signal)).weightVersions).toEqual([{ fromToken: 0, version: 5 }])
  })

  test('comes again for a server that starts again with the weights of its start', async () => {
    const { engine, servers, events } = await open(kind)
    const updater = createWeightUpdater({ fleet: engine.fleet, check: checked(engine, 2) })
    await updater.publish({ version: 2, directory: '/weights-2' })
    const [first] = servers as [ToyServer, ToyServer]
    await first.restart()
    await expect.poll(() => events).toContainEqual({ type: 'replica-restarted', server: first.url, label: 'default' })
    await expect.poll(() => engine.fleet.replicas()[0]!.out).toBeNull()
    expect(first.state).toMatchObject({ weights: 2, label: '2' })
    idle(engine)
  })
})

describe('an update', () => {
  test('leaves out a server that cannot load it, and brings it back with the next', async () => {
    const { engine, servers, events } = await open('vllm')
    const [bad] = servers as [ToyServer, ToyServer]
    let broken = true
    bad.answer((request, response) =>
      broken && request.path === '/collective_rpc'
        ? sendJson(response, 500, { error: { message: 'no room' } })
        : bad.route(request, response),
    )
    const updater = createWeightUpdater({ fleet: engine.fleet })
    const report = await updater.publish({ version: 1, directory: '/weights-1' })
    expect(report.replicas.map(({ error }) => error?.message ?? null)).toEqual([expect.stringContaining('no room'), null])
    expect(engine.fleet.replicas().map(({ out }) => out)).toEqual(['stale', null])
    expect(events).toContainEqual({ type: 'weights-failed', server: bad.url, version: 1, error: expect.any(Error) })
    expect(bad.state.paused).toBe(false)
    broken = false
    await updater.publish({ version: 2, directory: '/weights-2' })
    expect(engine.fleet.replicas().map(({ out, weightVersion }) => [out, weightVersion])).toEqual([
      [null, 2],
      [null, 2],
    ])
  })

  test('that no server can load is an error, and the old weights go on', async () => {
    const { engine } = await open('vllm')
    const updater = createWeightUpdater({ fleet: engine.fleet })
    await expect(updater.publish({ version: 1, directory: '/missing' })).rejects.toMatchObject({
      code: 'POLICY_UNAVAILABLE',
      message: expect.stringContaining('is not a folder'),
    })
    expect(engine.weightVersion()).toBe(0)
    expect((await engine.generate(toyCall(), signal)).weightVersions).toEqual([{ fromToken: 0, version: 0 }])
  })

  test('that a server missed is brought to it when it is back', async () => {
    const { engine, servers } = await open('vllm')
    const [away] = servers as [ToyServer, ToyServer]
    await away.die()
    await expect.poll(() => engine.fleet.replicas()[0]!.out).toBe('unhealthy')
    await createWeightUpdater({ fleet: engine.fleet }).publish({ version: 1, directory: '/weights-1' })
    expect(engine.fleet.replicas()[0]!.out).toBe('stale')
    await away.rise()
    await expect.poll(() => engine.fleet.replicas()[0]).toMatchObject({ out: null, weightVersion: 1 })
    expect(away.state.weights).toBe(1)
  })

  test('resumes a server that fails in the middle, and tries that again where it must', async () => {
    const { engine, servers } = await open('vllm', 1)
    const [server] = servers as [ToyServer]
    let refusals = 2
    server.answer((request, response) => {
      if (request.path === '/collective_rpc') return void response.destroy()
      if (request.path === '/resume' && refusals-- > 0) return sendJson(response, 500, { error: 'busy' })
      return server.route(request, response)
    })
    await expect(createWeightUpdater({ fleet: engine.fleet }).publish({ version: 1, directory: '/weights-1' })).rejects.toMatchObject({
      code: 'POLICY_UNAVAILABLE',
    })
    expect(server.state.paused).toBe(false)
    expect(server.seen.filter(({ path }) => path === '/resume')).toHaveLength(3)
    // It may have loaded them or not.
    await expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    server.answer(server.route)
    await createWeightUpdater({ fleet: engine.fleet }).publish({ version: 1, directory: '/weights-1' })
    await engine.generate(toyCall(), signal)
    idle(engine)
  })

  test('that takes too long is given up, and nothing is sampled from weights that nobody knows', async () => {
    const { engine, servers } = await open('vllm', 1)
    const [server] = servers as [ToyServer]
    server.answer((request, response) => (request.path === '/collective_rpc' ? undefined : server.route(request, response)))
    const update = createWeightUpdater({ fleet: engine.fleet, timeoutMs: 2_000 }).publish({ version: 1, directory: '/weights-1' })
    const failed = expect(update).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('2000 ms') })
    await sleep(20)
    const call = expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await failed
    expect(server.state.paused).toBe(false)
    await call
    idle(engine)
  })

  test('is given up with its signal', async () => {
    const { engine, servers } = await open('vllm', 1)
    servers[0]!.state.delayMs = 50
    const call = engine.generate(long(1), signal)
    await expect.poll(() => servers[0]!.state.running()).toBe(1)
    const controller = new AbortController()
    const update = createWeightUpdater({ fleet: engine.fleet }).publish({ version: 1, directory: '/weights-1' }, controller.signal)
    controller.abort(new Error('stop'))
    await expect(update).rejects.toThrow('stop')
    servers[0]!.state.delayMs = 0
    await call
    idle(engine)
  })

  test('comes behind the one before it, and never goes back', async () => {
    const { engine, servers } = await open('vllm', 1)
    const updater = createWeightUpdater({ fleet: engine.fleet })
    const both = [updater.publish({ version: 1, directory: '/weights-1' }), updater.publish({ version: 2, directory: '/weights-2' })]
    expect((await Promise.all(both)).map(({ version }) => version)).toEqual([1, 2])
    expect(servers[0]!.state.weights).toBe(2)
    await expect(updater.publish({ version: 2, directory: '/weights-2' })).rejects.toMatchObject({
      code: 'POLICY_VERSION_CONFLICT',
      details: { published: 2 },
    })
  })
})

test('a server that names other weights than were published is found out by the answer itself', async () => {
  const { engine, servers } = await open('vllm', 1, { probeIntervalMs: 60_000 })
  await createWeightUpdater({ fleet: engine.fleet }).publish({ version: 3, directory: '/weights-3' })
  await servers[0]!.restart()
  // Idle sockets of the old process may still be there. The call that meets one shows the restart.
  const call = () => engine.generate(toyCall(), signal).catch((error: unknown) => error)
  await expect.poll(async () => await call()).toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
})

test('a server that starts again under a call: what it answers is not taken for what was published', async () => {
  const { engine, servers, events } = await open('vllm-completions', 1, { probeIntervalMs: 60_000 })
  const [server] = servers as [ToyServer]
  await createWeightUpdater({ fleet: engine.fleet }).publish({ version: 3, directory: '/weights-3' })
  await engine.generate(toyCall(), signal)
  await server.restart()
  server.state.delayMs = 100
  // No probe is due for a minute, so only the sockets that the old process closed show the restart.
  const error = await engine.generate(long(1, 12), signal).catch((cause: unknown) => cause)
  expect(error).toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
  expect(events.map(({ type }) => type)).toContain('replica-restarted')
  server.state.delayMs = 0
  await expect.poll(async () => (await engine.generate(toyCall(), signal)).weightVersions).toEqual([{ fromToken: 0, version: 3 }])
  expect(server.state.weights).toBe(3)
})

test('servers that were given a number before keep it', async () => {
  const { servers } = await open('vllm')
  for (const { state } of servers) Object.assign(state, { label: '12', weights: 12 })
  const engine = await createVllmTokenEngine({ replicas: servers.map(({ url }) => url), model: toyModel })
  closers.push(() => engine.close())
  expect(engine.weightVersion()).toBe(12)
  expect((await engine.generate(toyCall(), signal)).weightVersions).toEqual([{ fromToken: 0, version: 12 }])
})
