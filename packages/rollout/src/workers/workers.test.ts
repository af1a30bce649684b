import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttemptState } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createAttemptExecutor } from '../attempt-executor.ts'
import { createRolloutServer } from '../service/rollout-server.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { agentWithTools, program, rolloutRequest } from '../testing/rollout-fixtures.ts'
import { runWorker } from './run-worker.ts'
import { outcome, plainWorker, startCoordinator, testAgent, token } from './start-workers.test-support.ts'

const keys = (count: number) => Array.from({ length: count }, (_, index) => `r${index}`)

test('agents run at workers, on all of them, and never beside the coordinator; without a worker attempts wait', async () => {
  await using coordinator = await startCoordinator({ agent: async (ask) => sleep(5).then(() => ask()) })
  const running = keys(12).map((key) => coordinator.run(rolloutRequest(key)))
  await expect.poll(() => coordinator.counts().waiting).toBe(12)
  const workers = [coordinator.work({ name: 'a' }), coordinator.work({ name: 'b' })]
  for (const state of await Promise.all(running))
    expect(state).toMatchObject({ status: 'done', episode: { reward: 1, attempt: 0, stopReason: 'completed' } })
  expect(coordinator.counts()).toMatchObject({ workers: 2, slots: 4, assigned: 0, waiting: 0, lostAttempts: 0 })
  expect(coordinator.runner.slots()).toBe(4)
  // Each attempt is recorded with the worker that ran it and with that worker's agent.
  const ran = coordinator.store.ends.map(({ worker }) => worker)
  for (const name of ['a', 'b']) expect(ran).toContainEqual({ name, agent: testAgent.hash })
  for (const worker of workers) worker.drain()
  await Promise.all(workers.map(({ ended }) => ended))
  await expect.poll(() => coordinator.counts().workers).toBe(0)
})

test('each agent of a swarm at a worker has the turns that it made, and the result says who handed to whom', async () => {
  await using coordinator = await startCoordinator({
    agents: [agentWithTools('planner'), agentWithTools('solver')],
    async agent(ask, { invoke }) {
      await ask('planner')
      invoke('solver', { startedBy: [{ trajectory: 'planner', toolCall: null }] })
      await ask('solver')
      return ask('solver')
    },
  })
  const worker = coordinator.work()
  const { episode } = await coordinator.run(rolloutRequest('a'))
  expect(episode!.trajectories.map(({ agent, turns }) => [agent, turns.map((turn) => turn.agent)])).toEqual([
    ['planner', ['planner']],
    ['solver', ['solver', 'solver']],
  ])
  expect(episode).toMatchObject({
    reward: 1,
    trajectories: [{ startedBy: [] }, { startedBy: [{ trajectory: 'planner', turn: 0, toolCall: null }] }],
  })
  worker.drain()
  await worker.ended
})

test('the coordinator knows which attempt has run longest, where, and in which tool', async () => {
  const open = Promise.withResolvers<void>()
  await using coordinator = await startCoordinator({
    limits: { beatMs: 20 },
    async agent(ask, { runTool }) {
      await runTool('agent', { id: 'call', name: 'slow', arguments: '{}' }, () =>
        open.promise.then(() => ({ content: '', isError: false })),
      )
      return ask()
    },
  })
  expect(coordinator.runner.oldest()).toBe(null)
  const worker = coordinator.work({ name: 'first' })
  const running = coordinator.run(rolloutRequest('a'))
  await expect
    .poll(() => coordinator.runner.oldest())
    .toMatchObject({ key: 'a', attempt: 0, worker: 'first', call: { tool: 'slow', openMs: expect.any(Number) } })
  open.resolve()
  expect(await running).toMatchObject({ episode: { reward: 1 } })
  expect(coordinator.runner.oldest()).toBe(null)
  worker.drain()
  await worker.ended
})

test('a worker that drains finishes what it has, takes nothing more and leaves; the rest goes elsewhere', async () => {
  const open = Promise.withResolvers<void>()
  await using coordinator = await startCoordinator({ agent: async (ask) => open.promise.then(() => ask()) })
  const first = coordinator.work({ name: 'first', slots: 1 })
  const running = keys(2).map((key) => coordinator.run(rolloutRequest(key)))
  await expect.poll(() => coordinator.counts()).toMatchObject({ assigned: 1, waiting: 1 })
  first.drain()
  await expect.poll(() => first.states).toEqual(['connected', 'draining'])
  open.resolve()
  await first.ended
  await expect.poll(() => coordinator.counts()).toMatchObject({ workers: 0, waiting: 1, lostAttempts: 0 })
  const second = coordinator.work({ name: 'second' })
  for (const state of await Promise.all(running)) expect(state).toMatchObject({ status: 'done', episode: { attempt: 0 } })
  coordinator.pool.drain()
  await second.ended
})

test('a worker is told that a result is kept when it is on disk, and not before; the same result again is no other', async () => {
  await using coordinator = await startCoordinator()
  const { store } = coordinator
  const disk = Promise.withResolvers<void>()
  const { finish } = store
  store.finish = (episode) => disk.promise.then(() => finish(episode))
  const worker = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => worker.of('assign')).toHaveLength(1)
  for (let times = 0; times < 3; times++) worker.say({ type: 'result', key: 'a', attempt: 0, outcome })
  await sleep(50)
  expect(worker.received.map(({ type }) => type)).toEqual(['welcome', 'resume', 'assign'])
  disk.resolve()
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 0 } })
  await expect.poll(() => worker.of('kept')).toMatchObject([{ key: 'a', attempt: 0 }])
  worker.socket.terminate()
})

test('a cancel does not wait for a worker that stands still; what it has is fenced', async () => {
  await using coordinator = await startCoordinator({ limits: { stopMs: 30 } })
  const worker = await plainWorker(coordinator.server.url)
  void coordinator.run(rolloutRequest('a'))
  await expect.poll(() => worker.of('assign')).toHaveLength(1)
  expect(await coordinator.service.cancel('a')).toMatchObject({ status: 'cancelled' })
  await expect.poll(() => worker.received.map(({ type }) => type)).toEqual(['welcome', 'resume', 'assign', 'cancel', 'fence'])
  worker.socket.terminate()
})

test('a slot whose attempt was not closed in time is given again, and the two attempts share neither lease, nor state, nor result', async () => {
  const closing = Promise.withResolvers<void>()
  const environment = memoryEnvironment({ beforeClose: () => closing.promise })
  const state: AttemptState<string[]> = { setup: async ({ rollout }) => [rollout] }
  const notes: (readonly string[])[] = []
  const agents = program(async (_, context) => {
    const own = await context.state(state)
    notes.push(own)
    await context.tools('agent')
    if (context.rollout === 'a') await new Promise((_resolve, reject) => context.signal.addEventListener('abort', reject))
    return { answer: own.join(), messages: [] }
  })
  await using coordinator = await startCoordinator({ limits: { stopMs: 100 } })
  const executor = createAttemptExecutor({ program: agents, environment, abandonAfterMs: 50 })
  const worker = coordinator.work({ slots: 1, openExecutor: () => executor })
  void coordinator.run(rolloutRequest('a'))
  await expect.poll(() => notes).toHaveLength(1)
  expect(await coordinator.service.cancel('a')).toMatchObject({ status: 'cancelled' })
  const other = coordinator.run(rolloutRequest('b'))
  await expect.poll(() => notes).toEqual([['a'], ['b']])
  expect([environment.openLeases(), environment.requests.map(({ rollout }) => rollout)]).toEqual([2, ['a', 'b']])
  closing.resolve()
  expect(await other).toMatchObject({ status: 'done', episode: { answer: 'b', attempt: 0 } })
  expect(coordinator.service.get('a')).toMatchObject({ status: 'cancelled' })
  worker.drain()
  await worker.ended
  expect(environment.openLeases()).toBe(0)
})

test('a coordinator that was there is waited for longer than one that never was', async () => {
  await using coordinator = await startCoordinator()
  const worker = coordinator.work({ waitMs: 100, awayMs: 60_000 })
  await expect.poll(() => worker.states).toEqual(['connected'])
  const { port } = new URL(coordinator.server.url)
  await coordinator.server.close()
  const patience = sleep(1_000).then(() => 'waits')
  expect(await Promise.race([worker.ended, patience])).toBe('waits')
  const again = await createRolloutServer({
    service: coordinator.service,
    workers: { pool: coordinator.pool, token },
    port: Number(port),
  })
  await expect.poll(() => worker.states).toEqual(['connected', 'lost', 'connected'])
  worker.drain()
  await worker.ended
  await again.close()
})

test('a worker that says nothing is assigned nothing, and then is no worker any more', async () => {
  await using coordinator = await startCoordinator({ limits: { deadMs: 50, graceMs: 400 } })
  const worker = await plainWorker(coordinator.server.url)
  await expect.poll(() => worker.of('welcome')).toHaveLength(1)
  await sleep(100)
  void coordinator.run(rolloutRequest('a'))
  await expect.poll(() => coordinator.counts()).toMatchObject({ workers: 0, waiting: 1 })
  expect(worker.of('assign')).toEqual([])
  await expect.poll(() => worker.socket.readyState).toBe(WebSocket.CLOSED)
})

test('workers run tools as their coordinator is told to', async () => {
  const environment = { callTimeoutMs: 7_000, startTimeoutMs: 900 }
  await using coordinator = await startCoordinator({ environment })
  const settings = Promise.withResolvers<object>()
  const worker = coordinator.work({
    openExecutor(environment) {
      settings.resolve(environment)
      return { execute: () => expect.unreachable(), hold() {}, resume() {} }
    },
  })
  expect(await settings.promise).toEqual(environment)
  worker.drain()
  await worker.ended
})

test('a worker that drains is assigned nothing more after it has connected again', async () => {
  await using coordinator = await startCoordinator()
  const first = await plainWorker(coordinator.server.url, { slots: 2 })
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => first.of('assign')).toHaveLength(1)
  const holding = [{ key: 'a', attempt: 0 }]
  first.say({ type: 'beat', holding, draining: true })
  first.socket.close()
  await once(first.socket, 'close')
  void coordinator.run(rolloutRequest('b'))
  const again = await plainWorker(coordinator.server.url, { slots: 2, holding, draining: true })
  again.say({ type: 'result', key: 'a', attempt: 0, outcome })
  await running
  expect(again.of('assign')).toEqual([])
  expect(coordinator.counts()).toMatchObject({ assigned: 0, waiting: 1 })
  again.socket.terminate()
})

test('a rollout that is cancelled ends at its worker, also one whose worker is away, and one that waits', async () => {
  await using coordinator = await startCoordinator({
    agent: (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  })
  const { service, counts } = coordinator
  const worker = coordinator.work({ slots: 1 })
  for (const key of ['runs', 'waits']) void coordinator.run(rolloutRequest(key))
  await expect.poll(() => counts()).toMatchObject({ assigned: 1, waiting: 1 })
  for (const key of ['waits', 'runs'])
    expect(await service.cancel(key)).toMatchObject({ status: 'cancelled', error: { code: 'ROLLOUT_CANCELLED' } })
  expect(counts()).toMatchObject({ assigned: 0, waiting: 0 })
  worker.drain()
  await worker.ended
  const away = await plainWorker(coordinator.server.url)
  void coordinator.run(rolloutRequest('away'))
  await expect.poll(() => away.of('assign')).toHaveLength(1)
  away.socket.terminate()
  await expect.poll(() => counts().workers).toBe(0)
  expect(await service.cancel('away')).toMatchObject({ status: 'cancelled' })
})

test('an agent that fails is a result; a task that kills one worker after the other is a failure without a reward', async () => {
  await using coordinator = await startCoordinator({
    limits: { graceMs: 20 },
    agent: async (ask, _, task) => {
      if (task === 'task-throws') throw new Error('boom')
      return ask()
    },
  })
  const worker = coordinator.work()
  expect(await coordinator.run(rolloutRequest('throws'))).toMatchObject({
    status: 'done',
    episode: { attempt: 0, error: { code: 'AGENT_FAILED' } },
  })
  worker.drain()
  await worker.ended

  const running = coordinator.run(rolloutRequest('kills'))
  for (const name of ['k1', 'k2', 'k3', 'k4', 'k5', 'k6']) {
    const killed = await plainWorker(coordinator.server.url, { name })
    await expect.poll(() => killed.of('assign')).toHaveLength(1)
    killed.socket.terminate()
  }
  expect(await running).toMatchObject({
    status: 'done',
    episode: {
      attempt: 5,
      stopReason: 'failed',
      reward: null,
      error: { code: 'WORKER_LOST', message: expect.stringContaining('worker "k6"') },
    },
  })
})

test('clocks of workers stand still while weights change, also of one that comes meanwhile', async () => {
  const calls: string[] = []
  await using coordinator = await startCoordinator()
  await coordinator.gateway.pause({ drain: false })
  const worker = coordinator.work({
    wrap: (executor) => ({
      execute: executor.execute,
      hold: () => calls.push('hold') && executor.hold(),
      resume: () => calls.push('resume') && executor.resume(),
    }),
  })
  await expect.poll(() => calls).toEqual(['hold'])
  coordinator.gateway.resume()
  await expect.poll(() => calls).toEqual(['hold', 'resume'])
  worker.drain()
  await worker.ended
})

test('a worker that is drained while it connects leaves, and is no worker any more once it is let in', async () => {
  const handshake = Promise.withResolvers<(taken: boolean) => void>()
  const verifyClient = (_info: unknown, decide: (taken: boolean) => void) => handshake.resolve(decide)
  const webSockets = new WebSocketServer({ host: '127.0.0.1', port: 0, verifyClient })
  await once(webSockets, 'listening')
  const drain = new AbortController()
  const ended = runWorker({
    url: `http://127.0.0.1:${(webSockets.address() as AddressInfo).port}`,
    name: 'worker',
    slots: 1,
    agent: testAgent,
    openExecutor: () => expect.unreachable('No attempt is here.'),
    signal: drain.signal,
  })
  const decide = await handshake.promise
  drain.abort()
  await ended
  const heard: string[] = []
  webSockets.once('connection', (socket) => {
    socket.on('message', () => heard.push('hello'))
    socket.on('close', () => heard.push('close'))
  })
  decide(true)
  await expect.poll(() => heard).not.toEqual([])
  expect(heard).toEqual(['close'])
  webSockets.close()
})
