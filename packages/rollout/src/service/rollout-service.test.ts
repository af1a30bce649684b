import { type AgentProgram, type RolloutRequest, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { memoryStore } from '../testing/memory-store.ts'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { forever, startService as start } from './start-service.test-support.ts'

const minute = { timeoutMs: 60_000 }

test('a rollout is queued, runs, and answers with its episode and samples', async () => {
  const { service } = start()
  expect(service.submit(rolloutRequest('a'))).toEqual({ version: 1, id: 'a', status: 'queued', episode: null, samples: [], error: null })
  const state = await service.wait('a', minute)
  expect(state).toMatchObject({ status: 'done', episode: { rollout: 'a', stopReason: 'completed', answer: 'Right.' } })
  expect(state.samples).toMatchObject([{ reward: 0, advantage: null, provenance: { rollout: 'a' } }])
  expect(service.counts()).toMatchObject({ queued: 0, running: 0, queuedBytes: 0, done: 1 })
  await service.close()
})

test('the same request again is the same rollout, at any time; another one under its key is a conflict', async () => {
  let runs = 0
  const { service, answer } = start({
    run: (task, context) => {
      runs++
      return answer(task, context)
    },
  })
  const other = rolloutRequest('a', { sample: 1 })
  service.submit(rolloutRequest('a'))
  expect(service.submit(rolloutRequest('a')).status).toBe('queued')
  expect(() => service.submit(other)).toThrow(/submitted before with another request/)
  await service.wait('a', minute)
  expect(service.submit(rolloutRequest('a')).status).toBe('done')
  expect(() => service.submit(other)).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
  expect(runs).toBe(1)
  await service.close()
})

test('ten times the concurrency waits in the queue; only its bytes are bounded', async () => {
  const bytes = Buffer.byteLength(JSON.stringify(rolloutRequest('00')))
  const { service } = start({ run: forever, concurrency: 2, limits: { maxQueuedBytes: 20 * bytes } })
  for (let index = 10; index < 30; index++) service.submit(rolloutRequest(String(index)))
  await expect.poll(() => service.counts()).toMatchObject({ running: 2, queued: 18, queuedBytes: 20 * bytes })
  expect(() => service.submit(rolloutRequest('30'))).toThrow(expect.objectContaining({ code: 'ROLLOUT_QUEUE_FULL', retryable: true }))
  expect((await service.cancel('29')).status).toBe('cancelled')
  expect(service.submit(rolloutRequest('30')).status).toBe('queued')
  expect(service.counts().oldestQueuedMs).toBeGreaterThanOrEqual(0)
  await service.close()
  expect(service.counts()).toMatchObject({ running: 0, queued: 0, queuedBytes: 0, cancelled: 21 })
})

test('a cancelled rollout has no result, and runs when it is submitted again', async () => {
  let calls = 0
  const { service, answer } = start({ run: (task, context) => (calls++ === 0 ? forever(task, context) : answer(task, context)) })
  service.submit(rolloutRequest('a'))
  await expect.poll(() => service.get('a').status).toBe('running')
  expect(await service.cancel('a')).toMatchObject({ status: 'cancelled', episode: null, error: { code: 'ROLLOUT_CANCELLED' } })
  service.submit(rolloutRequest('a'))
  expect(await service.wait('a', minute)).toMatchObject({ status: 'done', episode: { attempt: 1 } })
  expect((await service.cancel('a')).status).toBe('done')
  await service.close()
})

test('a rollout that is cancelled counts as what it was until its end is on disk', async () => {
  const store = memoryStore()
  const disk = Promise.withResolvers<void>()
  const { service } = start({
    run: forever,
    concurrency: 1,
    store: { ...store, cancel: (...end) => disk.promise.then(() => store.cancel(...end)) },
  })
  for (const key of ['runs', 'waits']) service.submit(rolloutRequest(key))
  await expect.poll(() => service.counts()).toMatchObject({ running: 1, queued: 1 })
  const cancels = [service.cancel('waits'), service.cancel('runs')]
  await new Promise((resolve) => setImmediate(resolve))
  expect([service.get('waits').status, service.get('runs').status]).toEqual(['queued', 'running'])
  expect(service.counts()).toMatchObject({ running: 1, queued: 1, cancelled: 0 })
  disk.resolve()
  expect((await Promise.all(cancels)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
  expect(service.counts()).toMatchObject({ running: 0, queued: 0, cancelled: 2 })
  await service.close()
})

test('a rollout whose result cannot be kept is failed, with the reason', async () => {
  const store = memoryStore()
  store.failWith('finish', new Error('no space left on device'))
  const { service } = start({ store })
  service.submit(rolloutRequest('a'))
  expect(await service.wait('a', minute)).toMatchObject({ status: 'failed', error: { message: 'no space left on device' } })
  await service.close()
})

test('an agent that throws gives an episode that failed: the rollout is done', async () => {
  const { service } = start({
    run: async () => {
      throw new Error('boom')
    },
  })
  service.submit(rolloutRequest('a'))
  expect(await service.wait('a', minute)).toMatchObject({ status: 'done', episode: { stopReason: 'failed' }, samples: [] })
  await service.close()
})

test('waiting ends with its time or its signal, and says where the rollout stands', async () => {
  const { service } = start({ run: forever })
  service.submit(rolloutRequest('a'))
  await expect.poll(() => service.get('a').status).toBe('running')
  expect((await service.wait('a', { timeoutMs: 5 })).status).toBe('running')
  expect((await service.wait('a', { timeoutMs: 60_000, signal: AbortSignal.abort() })).status).toBe('running')
  await expect(service.wait('b', minute)).rejects.toMatchObject({ code: 'ROLLOUT_UNKNOWN' })
  await service.close()
})

test('draining takes nothing more, and ends when what was taken has ended', async () => {
  const { service } = start()
  for (const key of ['a', 'b', 'c']) service.submit(rolloutRequest(key))
  const drained = service.drain(AbortSignal.timeout(60_000))
  expect(() => service.submit(rolloutRequest('d'))).toThrow(expect.objectContaining({ code: 'ROLLOUT_CANCELLED' }))
  await drained
  expect(service.counts()).toMatchObject({ done: 3, queued: 0, running: 0 })
  await service.close()
})

test('a service that forgets asks the store, whose word on a key is the same', async () => {
  const store = memoryStore()
  const { service } = start({ store, limits: { maxRemembered: 1 } })
  for (const key of ['a', 'b', 'c']) {
    service.submit(rolloutRequest(key))
    await service.wait(key, minute)
  }
  expect(service.get('a').episode?.rollout).toBe('a')
  expect(service.submit(rolloutRequest('a')).status).toBe('done')
  expect(() => service.submit(rolloutRequest('a', { group: 'other' }))).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
  await service.close()

  await store.begin(rolloutRequest('d'))
  const { service: next } = start({ store })
  expect(next.get('c')).toMatchObject({ status: 'done', samples: [{}] })
  expect(next.get('d')).toMatchObject({ status: 'interrupted', episode: null })
  next.submit(rolloutRequest('d'))
  expect(await next.wait('d', minute)).toMatchObject({ status: 'done', episode: { attempt: 1 } })
  await next.close()
})

test('who waits is handed the episode of the runner with samples that are built once; the store is read for who comes later', async () => {
  const store = memoryStore()
  const { service } = start({ store })
  service.submit(rolloutRequest('a'))
  const [one, other, bare] = await Promise.all([service.wait('a'), service.wait('a', minute), service.wait('a', { samples: false })])
  expect(one).toMatchObject({ status: 'done', episode: { rollout: 'a' }, samples: [{}] })
  expect(other.samples).toBe(one.samples)
  expect(bare).toEqual({ ...one, samples: [] })
  expect(store.reads).toBe(0)
  expect(service.get('a')).toEqual(one)
  expect(store.reads).toBe(1)
  await service.close()
})

test('a rollout that the check refuses is not taken, and is known to nobody', async () => {
  let refused = 0
  const { service } = start({
    check: ({ task }) => {
      refused++
      throw new TrainError('ROLLOUT_INVALID', `Task "${task.id}" has no answer.`)
    },
  })
  expect(() => service.submit(rolloutRequest('a'))).toThrow(expect.objectContaining({ code: 'ROLLOUT_INVALID' }))
  expect(() => service.get('a')).toThrow(expect.objectContaining({ code: 'ROLLOUT_UNKNOWN' }))
  expect(refused).toBe(1)
  expect(service.counts()).toMatchObject({ queued: 0, running: 0, queuedBytes: 0 })
  await service.close()
})

test('what was accepted and has no result runs again by itself in the next service over its store; what was cancelled or only submitted does not', async () => {
  const store = memoryStore()
  const { service } = start({ store, run: forever, concurrency: 1 })
  for (const key of ['runs', 'waits', 'cancelled']) expect((await service.accept(rolloutRequest(key))).status).toBe('queued')
  service.submit(rolloutRequest('of-a-trainer'))
  expect((await service.cancel('cancelled')).status).toBe('cancelled')
  await service.close()

  const { service: next } = start({ store })
  for (const key of ['runs', 'waits']) expect(await next.wait(key, minute)).toMatchObject({ status: 'done', episode: { answer: 'Right.' } })
  expect(next.get('cancelled')).toMatchObject({
    status: 'cancelled',
    error: { code: 'ROLLOUT_CANCELLED', message: expect.stringContaining('"cancelled"') },
  })
  expect(next.get('of-a-trainer').status).toBe('interrupted')
  await next.close()
  expect(start({ store }).service.counts()).toMatchObject({ queued: 0, running: 0 })
})

test('a rollout that the environment failed runs again when it is submitted again, also in the next service over its store', async () => {
  let isBroken = true
  const store = memoryStore()
  const before = async () => {
    if (isBroken) throw new TrainError('TOOL_SERVER_DIED', 'It died.')
  }
  const first = start({ before, store })
  const request = rolloutRequest('a')
  const failed = { status: 'done', episode: { stopReason: 'failed', error: { code: 'TOOL_SERVER_DIED' } } }
  for (const attempt of [2, 5]) {
    await first.service.accept(request)
    expect(await first.service.wait('a')).toMatchObject({ ...failed, episode: { ...failed.episode, attempt } })
  }
  await first.service.close()
  const second = start({ before, store })
  isBroken = false
  await second.service.accept(request)
  expect(await second.service.wait('a')).toMatchObject({ status: 'done', episode: { stopReason: 'completed', attempt: 6 } })
  expect((await second.service.accept(request)).status).toBe('done')
  await second.service.close()
})

test('what was accepted and failed has its answer: the next service does not run it again', async () => {
  const store = memoryStore()
  const { service } = start({ store })
  const { finish } = store
  store.finish = () => Promise.reject(new TrainError('STORE_FAILED', 'The episode cannot be written.'))
  await service.accept(rolloutRequest('a'))
  expect(await service.wait('a', minute)).toMatchObject({ status: 'failed', error: { code: 'STORE_FAILED' } })
  await service.close()
  store.finish = finish
  const { service: next } = start({ store })
  expect(next.counts()).toMatchObject({ queued: 0, running: 0 })
  expect(next.get('a')).toMatchObject({ status: 'failed', error: { code: 'STORE_FAILED' } })
  next.submit(rolloutRequest('a'))
  expect(await next.wait('a', minute)).toMatchObject({ status: 'done' })
  await next.close()
})

test('a rollout that was cut off again and again is not run again by itself: it may be what ends the process', async () => {
  const store = memoryStore()
  const starts: string[] = []
  const run: AgentProgram['run'] = (task, context) => {
    starts.push(task.id)
    return forever(task, context)
  }
  const limits = { maxAttemptsOfRestarts: 3 }
  const { service: first } = start({ store, run, limits })
  await first.accept(rolloutRequest('a'))
  await expect.poll(() => starts.length).toBe(1)
  // Each is a killed process, which closes nothing.
  const killed = [first]
  for (const times of [2, 3]) {
    killed.push(start({ store, run, limits }).service)
    await expect.poll(() => starts.length).toBe(times)
  }
  const { service: last } = start({ store, limits })
  expect(last.get('a').status).toBe('interrupted')
  last.submit(rolloutRequest('a'))
  expect(await last.wait('a', minute)).toMatchObject({ status: 'done', episode: { attempt: 3 } })
  await Promise.all([last, ...killed].map((service) => service.close()))
})

test('what was accepted is not run again where its task has no answer any more: it would be scored without', async () => {
  const store = memoryStore()
  const { service } = start({ store, run: forever })
  for (const key of ['a', 'b']) await service.accept(rolloutRequest(key))
  await service.close()
  const check = ({ key }: RolloutRequest) => {
    if (key === 'a') throw new TrainError('ROLLOUT_INVALID', 'Its task has no answer.')
  }
  const { service: next } = start({ store, check })
  expect(next.get('a').status).toBe('interrupted')
  expect(await next.wait('b', minute)).toMatchObject({ status: 'done' })
  expect(() => next.submit(rolloutRequest('a'))).toThrow(/no answer/)
  await next.close()
})

test('a rollout that cannot be queued on disk is not accepted, and has no result', async () => {
  const store = memoryStore()
  store.failWith('keepSubmission', new TrainError('STORE_FULL', 'The disk is full.'))
  const { service } = start({ store, run: forever })
  await expect(service.accept(rolloutRequest('a'))).rejects.toMatchObject({ code: 'STORE_FULL' })
  expect(await service.wait('a', minute)).toMatchObject({ status: 'cancelled', episode: null })
  await service.close()
})
