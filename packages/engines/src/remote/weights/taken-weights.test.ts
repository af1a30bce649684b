import { afterEach, describe, expect, test } from 'vitest'
import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import type { FleetEvent } from '../fleet/fleet-types.ts'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { sendJson } from '../testing/http-server.ts'
import { createToySglang } from '../testing/sglang-server.ts'
import { toyModel } from '../testing/toy-policy.ts'
import { createToyVllm, type ToyServer } from '../testing/vllm-server.ts'
import { createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { createWeightUpdater } from './weight-updater.ts'

type Kind = 'vllm' | 'vllm-completions' | 'sglang'
const signal = new AbortController().signal
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function open(kind: Kind, count = 2) {
  const servers: ToyServer[] = []
  for (let index = 0; index < count; index++) servers.push(await (kind === 'sglang' ? createToySglang() : createToyVllm()))
  const events: FleetEvent[] = []
  const options = {
    replicas: servers.map(({ url }) => url),
    model: toyModel,
    streamInterval: 1,
    probeIntervalMs: 20,
    unavailableMs: 30_000,
    onEvent: (event: FleetEvent) => void events.push(event),
  }
  const engine: RemoteTokenEngine =
    kind === 'sglang'
      ? await createSglangTokenEngine(options)
      : await createVllmTokenEngine({ ...options, route: kind === 'vllm' ? 'generate' : 'completions' })
  closers.push(() => engine.close(), ...servers.map((server) => () => server.close()))
  return { servers, engine, events, updater: createWeightUpdater({ fleet: engine.fleet }) }
}

const out = ({ fleet }: RemoteTokenEngine) => fleet.replicas().map((replica) => replica.out)
const long = toyCall({ random: { seed: 5, task: 'long', sample: 0, turn: 1 }, sampling: { ...toyCall().sampling, maxTokens: 24 } })

describe.each<Kind>(['vllm', 'vllm-completions', 'sglang'])('weights that others brought to %s', (kind) => {
  test('are taken as a version, and calls flow again', async () => {
    const { engine, servers, updater } = await open(kind)
    for (const { state } of servers) Object.assign(state, { weights: 7, label: 'of-the-trainer' })
    await expect.poll(() => out(engine)).toEqual(['stale', 'stale'])
    await expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    const report = await updater.publish({ version: 7 })
    expect(report.replicas.map(({ error }) => error)).toEqual([null, null])
    expect(out(engine)).toEqual([null, null])
    expect((await engine.generate(toyCall(), signal)).weightVersions).toEqual([{ fromToken: 0, version: 7 }])
    expect(servers.map(({ state }) => state.label)).toEqual(['7', '7'])
    const loads = servers.flatMap(({ seen }) => seen).filter(({ path }) => /collective_rpc|from_disk|pause/.test(path))
    expect(loads).toEqual([])
  })

  test('show in a call that was paused meanwhile', async () => {
    const { engine, servers, updater } = await open(kind, 1)
    const { state } = servers[0]!
    state.delayMs = 50
    const call = engine.generate(long, signal)
    await expect.poll(() => engine.sampledTokens()).toBeGreaterThan(2)
    state.paused = true
    state.weights = 3
    await updater.publish({ version: 3 })
    state.paused = false
    state.delayMs = 0
    const { weightVersions, mixedVersions } = await call
    if (kind === 'vllm-completions') expect(mixedVersions).toEqual({ lowest: 0, highest: 3 })
    else expect(weightVersions.map(({ version }) => version)).toEqual([0, 3])
    // Requests from before the publication are no reason to take the server out.
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(out(engine)).toEqual([null])
  })

  test('cannot be restored: a server that starts again is out until they are published once more', async () => {
    const { engine, servers, updater, events } = await open(kind)
    const [first] = servers as [ToyServer, ToyServer]
    await updater.publish({ version: 1, directory: '/weights-1' })
    for (const { state } of servers) state.weights = 2
    await updater.publish({ version: 2 })
    await first.restart()
    await expect.poll(() => events).toContainEqual(expect.objectContaining({ type: 'weights-failed', server: first.url, version: 2 }))
    expect(out(engine)).toEqual(['stale', null])
    // The weights of version 1, which were its last from a folder, do not replace them.
    expect(first.state.weights).toBe(0)
    first.state.weights = 2
    await updater.publish({ version: 2 })
    expect(out(engine)).toEqual([null, null])
    await expect(updater.publish({ version: 1 })).rejects.toMatchObject({ code: 'POLICY_VERSION_CONFLICT', details: { published: 2 } })
    await updater.publish({ version: 3, directory: '/weights-3' })
    expect(servers.map(({ state }) => state.weights)).toEqual([3, 3])
  })

  test('are left out where a server does not take their name', async () => {
    const { engine, servers, updater } = await open(kind)
    const [bad] = servers as [ToyServer, ToyServer]
    bad.answer((request, response) =>
      request.path === '/update_weight_version' ? sendJson(response, 500, { error: 'busy' }) : bad.route(request, response),
    )
    const report = await updater.publish({ version: 4 })
    expect(report.replicas.map(({ error }) => error?.message ?? null)).toEqual([expect.stringContaining('busy'), null])
    expect(out(engine)).toEqual(['stale', null])
  })
})

test('an adapter that others loaded is taken under its name', async () => {
  const { engine, servers, updater } = await open('vllm')
  for (const { state } of servers) state.adapters.set('helper', 9)
  await updater.publish({ version: 5, policy: 'helper' })
  expect((await engine.generate(toyCall({ policy: 'helper' }), signal)).weightVersions).toEqual([{ fromToken: 0, version: 5 }])
  expect((await engine.generate(toyCall(), signal)).weightVersions).toEqual([{ fromToken: 0, version: 0 }])
})

test('what happens to calls in flight is said for one publication', async () => {
  const { engine, servers, updater } = await open('vllm', 1)
  servers[0]!.state.delayMs = 50
  const call = engine.generate(long, signal)
  await expect.poll(() => engine.sampledTokens()).toBeGreaterThan(2)
  await updater.publish({ version: 1, directory: '/weights-1', inFlight: 'abort' })
  expect((await call).finishReason.unified).toBe('aborted')
})

test.each([
  [403, { error: 'Forbidden' }],
  [404, { detail: 'Not Found' }],
])('a vLLM without its flag, which answers %i, is told of the flag and of the other route', async (status, body) => {
  const { engine, servers } = await open('vllm', 1)
  const [server] = servers as [ToyServer]
  server.answer((request, response) =>
    request.path === '/inference/v1/generate' ? sendJson(response, status, body) : server.route(request, response),
  )
  await expect(engine.generate(toyCall(), signal)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/--enable-scale-out, or set route: completions/),
  })
  server.answer(server.route)
  await expect(engine.generate(toyCall({ policy: 'nobody' }), signal)).rejects.toThrow(/does not know the model/)
})

test('a vLLM without the route that loads weights is told what it needs', async () => {
  const { servers, updater } = await open('vllm', 1)
  const [server] = servers as [ToyServer]
  server.answer((request, response) =>
    /collective_rpc|pause|resume/.test(request.path) ? sendJson(response, 404, { detail: 'Not Found' }) : server.route(request, response),
  )
  await expect(updater.publish({ version: 1, directory: '/weights-1' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('VLLM_SERVER_DEV_MODE=1'),
  })
})
