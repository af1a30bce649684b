import { setTimeout as sleep } from 'node:timers/promises'
import { type AttemptName, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createAttemptExecutor } from './attempt-executor.ts'
import type { WorkerLink } from './rollout-workers.ts'
import { memoryEnvironment } from './testing/memory-environment.ts'
import { memoryGateway } from './testing/memory-gateway.ts'
import { memoryStore } from './testing/memory-store.ts'
import { program, rolloutRequest } from './testing/rollout-fixtures.ts'
import { setUpRunner } from './testing/set-up-runner.ts'

const never = new AbortController().signal
const user = { role: 'user', content: 'Go on.' } as const

/** A runner without slots of its own, and workers that run its agent. A `dead` worker is never heard again. */
function setUp({ delayMs = 0 } = {}) {
  const gateway = memoryGateway(() => ({ content: 'yes', delayMs }))
  const store = memoryStore()
  const { runner, events } = setUpRunner({ agent: async () => null, gateway, store, workers: { attach() {} } })
  const executed: string[] = []
  const fenced: AttemptName[] = []
  const kept: AttemptName[] = []
  let incarnations = 0
  function greet(name: string, { isDead = false, slots = 1, leaseMs = 60_000 } = {}): void {
    const executor = createAttemptExecutor({
      program: program(async (_, context) => {
        const { content } = await gateway.call(context.policy(), [user], context.signal)
        executed.push(`${name} ${context.rollout}.${context.attempt}`)
        return isDead ? await new Promise<never>(() => {}) : { answer: content, messages: [] }
      }),
      environment: memoryEnvironment(),
    })
    const link: WorkerLink = {
      ...executor,
      fence: (attempt) => fenced.push(attempt),
      kept: ({ key, attempt }) => kept.push({ key, attempt }),
    }
    const terms = { slots, leaseMs, graceMs: 0, stopMs: leaseMs, isDraining: false }
    runner.workers.hello({ ...terms, name, incarnation: `${incarnations++}`, holding: [], link })
  }
  return { runner, gateway, store, events, executed, fenced, kept, greet }
}

test('rollouts run where there is room, and a worker is told which results are kept', async () => {
  const { runner, greet, kept } = setUp()
  const episodes = runner.runAll([rolloutRequest('a'), rolloutRequest('b'), rolloutRequest('c')], never)
  expect(runner.counts()).toMatchObject({ queued: 3, running: 0 })
  greet('first')
  greet('second')
  expect((await episodes).map(({ reward }) => reward)).toEqual([1, 1, 1])
  expect(kept.map(({ key }) => key).sort()).toEqual(['a', 'b', 'c'])
  const nothing = { status: 'connected', slots: 1, assignments: [], lostAttempts: 0 }
  expect(runner.workers.rows()).toMatchObject([
    { name: 'first', ...nothing },
    { name: 'second', ...nothing },
  ])
})

test('what a lost worker had runs again; its URLs are closed, and its tokens are superseded', async () => {
  const { runner, gateway, store, executed, greet } = setUp()
  greet('dies', { isDead: true, leaseMs: 2_000 })
  const episode = runner.run(rolloutRequest('a'), never)
  await expect.poll(() => executed).toEqual(['dies a.0'])
  greet('lives')
  expect(await episode).toMatchObject({ attempt: 1, reward: 1, stopReason: 'completed' })
  expect(executed).toEqual(['dies a.0', 'lives a.1'])
  expect(runner.workers.rows()).toMatchObject([
    { name: 'dies', status: 'lost', assignments: [], lostAttempts: 1 },
    { name: 'lives', status: 'connected', assignments: [], lostAttempts: 0 },
  ])
  expect(store.ends).toMatchObject([
    { rollout: 'a', worker: { name: 'dies' }, error: { code: 'WORKER_LOST', message: expect.stringContaining('"dies"') } },
    { rollout: 'a', worker: { name: 'lives' }, error: null },
  ])
  runner.workers.leave('lives')
  expect(runner.workers.rows().map(({ name }) => name)).toEqual(['dies'])
  expect(gateway.openSessions()).toBe(0)
  expect(runner.counts()).toMatchObject({ finished: 1, retries: 0, supersededTokens: 3 })
  expect(store.turns.map(({ attempt }) => attempt)).toEqual([0, 1])
})

test('says of each worker whether it is there, and which attempts it has', async () => {
  const { runner, executed, greet } = setUp()
  greet('w', { isDead: true })
  const episode = runner.run(rolloutRequest('a'), never).catch((error: TrainError) => error.code)
  await expect.poll(() => executed).toEqual(['w a.0'])
  const assignments = [{ key: 'a', attempt: 0 }]
  const row = () => runner.workers.rows()[0]
  expect(row()).toEqual({ name: 'w', status: 'connected', slots: 1, assignments, heardAt: expect.any(Number), lostAttempts: 0 })
  runner.workers.drain('w')
  expect(row()).toMatchObject({ status: 'draining', assignments })
  runner.workers.disconnect('w')
  expect(row()).toMatchObject({ status: 'away', assignments })
  greet('w')
  expect(row()).toMatchObject({ status: 'connected', lostAttempts: 1 })
  await expect.poll(() => executed).toEqual(['w a.0', 'w a.1'])
  await runner.close()
  expect(await episode).toMatchObject({ attempt: 1, reward: 1 })
})

test('a task that loses three workers which it has for itself fails without a reward, with what was sampled last', async () => {
  const { runner, executed, greet } = setUp()
  const episode = runner.run(rolloutRequest('a'), never)
  for (const attempt of [0, 1, 2, 3, 4, 5]) {
    greet('dies', { isDead: true })
    await expect.poll(() => executed).toHaveLength(attempt + 1)
  }
  greet('dies', { isDead: true })
  expect(await episode).toMatchObject({
    attempt: 5,
    stopReason: 'failed',
    reward: null,
    error: { code: 'WORKER_LOST', message: expect.stringContaining('alone on 3 workers') },
    trajectories: [{ turns: [{ index: 0 }] }],
  })
})

test('a rollout on a lost worker can be cancelled, and a runner with work on it can be closed', async () => {
  const { runner, executed, greet } = setUp()
  greet('dies', { isDead: true, slots: 2, leaseMs: 2_000 })
  const stop = new AbortController()
  const both = [runner.run(rolloutRequest('a'), stop.signal), runner.run(rolloutRequest('b'), never)]
  const settled = Promise.allSettled(both)
  await expect.poll(() => executed).toHaveLength(2)
  stop.abort(new Error('not needed'))
  await expect(both[0]).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  await runner.close()
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('the time of workers stands still while the gateway holds calls, also of those that greet meanwhile', async () => {
  const { runner, gateway, greet } = setUp()
  await gateway.pause({ drain: false })
  greet('w')
  const episode = runner.run(rolloutRequest('a', { limits: { timeoutMs: 3_000 } }), never)
  await sleep(3_500)
  gateway.resume()
  expect(await episode).toMatchObject({ stopReason: 'completed' })
})

test('a rollout that is under way cannot be begun twice', async () => {
  const { runner, greet } = setUp({ delayMs: 30 })
  greet('w')
  const episode = runner.run(rolloutRequest('a'), never)
  await expect(runner.run(rolloutRequest('a'), never)).rejects.toMatchObject({ code: 'ROLLOUT_CONFLICT' })
  await episode
})

test('where no worker can be had at all, rollouts that wait and those that come have no result, for that reason', async () => {
  const { runner, gateway, store } = setUp()
  const waits = runner.run(rolloutRequest('a'), never)
  runner.workers.fail(new TrainError('MODULE_INVALID', 'No such file.'))
  await expect(waits).rejects.toMatchObject({ code: 'MODULE_INVALID' })
  await expect(runner.run(rolloutRequest('b'), never)).rejects.toMatchObject({ code: 'MODULE_INVALID' })
  expect([gateway.openSessions(), store.episode('a'), runner.counts().running]).toEqual([0, null, 0])
})
