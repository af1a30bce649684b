import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerProtocol } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { runWorker } from './run-worker.ts'
import { outcome, plainWorker, startCoordinator, testAgent } from './start-workers.test-support.ts'

test('a lost connection keeps its attempts for the grace period: the worker comes again and their results count', async () => {
  const open = Promise.withResolvers<void>()
  await using coordinator = await startCoordinator({ agent: async (ask) => open.promise.then(() => ask()) })
  const worker = coordinator.work()
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => coordinator.counts().assigned).toBe(1)
  coordinator.pool.disconnect()
  await expect.poll(() => worker.states).toEqual(['connected', 'lost', 'connected'])
  open.resolve()
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 0 } })
  expect(coordinator.counts()).toMatchObject({ lostAttempts: 0 })
})

test('a result that was made while the connection was lost arrives after it', async () => {
  const open = Promise.withResolvers<void>()
  await using coordinator = await startCoordinator({ agent: async (ask) => Promise.all([ask(), open.promise]).then(([answer]) => answer) })
  const worker = coordinator.work()
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => coordinator.counts().assigned).toBe(1)
  coordinator.pool.disconnect()
  open.resolve()
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 0, answer: 'yes' } })
  expect(worker.states).toContain('lost')
})

test('the attempts of a worker that does not come back run elsewhere as new attempts; when it wakes, what it holds is fenced and its result is refused', async () => {
  await using coordinator = await startCoordinator({ limits: { graceMs: 40 } })
  const lost = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect
    .poll(() => lost.of('assign'))
    .toMatchObject([{ key: 'a', attempt: 0, endpoints: { agent: {} }, limits: { timeoutMs: 120_000 } }])
  expect(JSON.stringify(lost.received)).not.toContain('extraInfo')
  lost.socket.terminate()
  await expect.poll(() => coordinator.counts().lostAttempts).toBe(1)
  const other = coordinator.work()
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 1, reward: 1 } })
  const woken = await plainWorker(coordinator.server.url, { holding: [{ key: 'a', attempt: 0 }] })
  await expect.poll(() => woken.of('fence')).toMatchObject([{ key: 'a', attempt: 0 }])
  woken.say({ type: 'result', key: 'a', attempt: 0, outcome })
  await expect.poll(() => woken.of('fence')).toHaveLength(2)
  expect(woken.of('kept')).toEqual([])
  expect(coordinator.service.get('a').episode?.attempt).toBe(1)
  woken.socket.terminate()
  other.drain()
  await other.ended
})

test('a worker that starts again under its name frees its attempts at once', async () => {
  await using coordinator = await startCoordinator({ limits: { graceMs: 60_000 } })
  const first = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => first.of('assign')).toHaveLength(1)
  first.socket.terminate()
  const again = coordinator.work({ name: 'plain' })
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 1 } })
  again.drain()
  await again.ended
})

test('a worker that starts again under its name gets in when its old connection, which nobody has ended, is silent', async () => {
  await using coordinator = await startCoordinator({ limits: { beatMs: 20, deadMs: 4_000, graceMs: 60_000 } })
  const first = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => first.of('assign')).toHaveLength(1)
  first.socket.pause()
  const warnings: string[] = []
  const again = coordinator.work({ name: 'plain', waitMs: 60_000, onWarning: ({ code }) => warnings.push(code) })
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 1 } })
  expect(new Set(warnings)).toEqual(new Set(['WORKER_NAME']))
  again.drain()
  await again.ended
  first.socket.terminate()
})

test('an assignment that was lost with its connection begins again and is no lost worker; one that is held goes on', async () => {
  await using coordinator = await startCoordinator({})
  const first = await plainWorker(coordinator.server.url, { slots: 2 })
  const running = ['a', 'b'].map((key) => coordinator.run(rolloutRequest(key)))
  await expect.poll(() => first.of('assign')).toHaveLength(2)
  first.socket.terminate()
  const again = await plainWorker(coordinator.server.url, { slots: 2, holding: [{ key: 'a', attempt: 0 }] })
  await expect.poll(() => again.of('assign')).toMatchObject([{ key: 'b', attempt: 1 }])
  again.say({ type: 'result', key: 'a', attempt: 0, outcome })
  again.say({ type: 'result', key: 'b', attempt: 1, outcome })
  await expect.poll(() => again.of('kept')).toHaveLength(2)
  expect((await Promise.all(running)).map(({ episode }) => episode?.attempt)).toEqual([0, 1])
  again.socket.terminate()
})

test('a worker whose process has ended, as its launcher says, frees its attempts at once, also where its connection seems open', async () => {
  await using coordinator = await startCoordinator({ limits: { deadMs: 60_000, graceMs: 60_000 } })
  const first = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => first.of('assign')).toHaveLength(1)
  first.socket.pause()
  const other = coordinator.work({ name: 'other' })
  coordinator.pool.exit('plain')
  coordinator.pool.exit('nobody')
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 1 } })
  expect(coordinator.warnings).toEqual([
    { code: 'WORKER_LOST', message: 'Worker "plain" is gone with 1 of its attempts, which begin again: its process has ended.' },
  ])
  other.drain()
  await other.ended
  first.socket.terminate()
})

test('a worker that connects again before its old connection is known to be gone keeps its attempts for good', async () => {
  await using coordinator = await startCoordinator({ limits: { graceMs: 30 } })
  const first = await plainWorker(coordinator.server.url)
  const running = coordinator.run(rolloutRequest('a'))
  await expect.poll(() => first.of('assign')).toHaveLength(1)
  const again = await plainWorker(coordinator.server.url, { holding: [{ key: 'a', attempt: 0 }] })
  await expect.poll(() => again.of('welcome')).toHaveLength(1)
  await sleep(100)
  expect(coordinator.counts()).toMatchObject({ workers: 1, assigned: 1, lostAttempts: 0 })
  again.say({ type: 'result', key: 'a', attempt: 0, outcome })
  expect(await running).toMatchObject({ status: 'done', episode: { attempt: 0 } })
  again.socket.terminate()
})

test('clocks that stood still when a connection was lost go on where weights have changed meanwhile', async () => {
  const calls: string[] = []
  await using coordinator = await startCoordinator()
  const worker = coordinator.work({
    wrap: ({ execute }) => ({ execute, hold: () => void calls.push('hold'), resume: () => void calls.push('resume') }),
  })
  await expect.poll(() => worker.states).toEqual(['connected'])
  await coordinator.gateway.pause({ drain: false })
  await expect.poll(() => calls.at(-1)).toBe('hold')
  coordinator.pool.disconnect()
  coordinator.gateway.resume()
  await expect.poll(() => calls.at(-1)).toBe('resume')
  worker.drain()
  await worker.ended
})

test('a worker that hears nothing for the length of its lease gives up what it has', async () => {
  const aborted: string[] = []
  await using coordinator = await startCoordinator({
    limits: { beatMs: 20, deadMs: 2_000, graceMs: 2_000 },
    agent: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          aborted.push(signal.reason.message)
          reject(signal.reason)
        }),
      ),
  })
  const worker = coordinator.work({ waitMs: 60_000 })
  void coordinator.run(rolloutRequest('a'))
  await expect.poll(() => coordinator.counts().assigned).toBe(1)
  await coordinator.server.close()
  await expect.poll(() => aborted).toEqual([expect.stringContaining('was cancelled')])
  worker.drain()
  await worker.ended
})

test('a worker that gave up what it had comes as a new one: the same attempt is not run again', async () => {
  let open = true
  const hellos: Record<string, unknown>[] = []
  const webSockets = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    verifyClient: (_info: unknown, decide: (taken: boolean, code?: number) => void) => decide(open, 503),
  })
  webSockets.on('connection', (socket) => {
    socket.once('message', (data) => {
      hellos.push(JSON.parse(String(data)))
      const task = { version: 1, id: 't', hash: 't', input: 'Go on.', data: {}, dataSource: 'test' }
      const limits = { timeoutMs: 1_000 }
      const assign = { type: 'assign', key: 'a', attempt: 0, sample: 0, task, endpoints: {}, limits }
      for (const message of [
        { type: 'welcome', protocol: workerProtocol, beatMs: 20, leaseMs: 2_000, maxFrameBytes: 1_000, environment: {} },
        assign,
      ])
        socket.send(JSON.stringify(message))
    })
  })
  await once(webSockets, 'listening')
  const begin = Promise.withResolvers<void>()
  const abort = Promise.withResolvers<void>()
  const drain = new AbortController()
  const ended = runWorker({
    url: `http://127.0.0.1:${(webSockets.address() as AddressInfo).port}`,
    name: 'worker',
    slots: 1,
    agent: testAgent,
    openExecutor: () => ({
      execute: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          begin.resolve()
          signal.addEventListener('abort', () => {
            abort.resolve()
            reject(signal.reason)
          })
        }),
      hold() {},
      resume() {},
    }),
    signal: drain.signal,
  })
  await begin.promise
  open = false
  for (const socket of webSockets.clients) socket.terminate()
  await abort.promise
  open = true
  await expect.poll(() => hellos).toHaveLength(2)
  expect(hellos[1]).toMatchObject({ name: 'worker', holding: [] })
  expect(hellos[1]!['incarnation']).not.toBe(hellos[0]!['incarnation'])
  drain.abort()
  for (const socket of webSockets.clients) socket.terminate()
  webSockets.close()
  await ended.catch(() => {})
})
