import type { AttemptName, ErrorRecord } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { schedule, wakeAt } from './schedule.ts'
import { createSchedulerState, type SchedulerEvent } from './scheduler-state.ts'

const lost: ErrorRecord = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'The server ended.' }
const terms = { leaseMs: 30, graceMs: 15, stopMs: 5 }
const hello = (worker: string, slots: number, holding: AttemptName[] = [], incarnation = '1', isDraining = false): SchedulerEvent => ({
  type: 'hello',
  worker,
  incarnation,
  isDraining,
  holding,
  slots,
  ...terms,
})
const beat = (worker: string, holding: AttemptName[] = []): SchedulerEvent => ({ type: 'beat', worker, holding })

/** A scheduler whose commands are written as words. Each event comes one millisecond after the one before. */
function create({ retries = 2, maxLosses = 3, concurrency = 8 } = {}) {
  const state = createSchedulerState({ retries, maxLosses, concurrency })
  let now = 0
  const words = ({ type, ...rest }: object & { type: string }) =>
    [
      type,
      ...Object.values(rest).map((value) =>
        value !== null && typeof value === 'object' ? (value as ErrorRecord).code : value === true ? 'last' : value,
      ),
    ]
      .filter((word) => word !== false)
      .join(' ')
  return {
    state,
    tell: (event: SchedulerEvent) => schedule(state, event, ++now).map(words),
    wait: (milliseconds: number, isLate = false) => {
      now += milliseconds
      return schedule(state, { type: 'tick', isLate }, now).map(words)
    },
  }
}

/** A rollout that worker `w` runs in attempt 0. */
function running(options?: Parameters<typeof create>[0]) {
  const scheduler = create(options)
  scheduler.tell(hello('w', 1))
  scheduler.tell({ type: 'submit', key: 'a' })
  expect(scheduler.tell({ type: 'begun', key: 'a', attempt: 0 })).toEqual(['assign w a 0'])
  return scheduler
}

test('rollouts begin in the order they came, as slots become free; the worker with the most free slots is first', () => {
  const { tell } = create()
  for (const key of ['a', 'b', 'c', 'd']) expect(tell({ type: 'submit', key })).toEqual([])
  expect(tell(hello('small', 1))).toEqual(['begin a'])
  expect(tell(hello('large', 2))).toEqual(['begin b', 'begin c'])
  expect(tell({ type: 'begun', key: 'c', attempt: 0 })).toEqual(['assign large c 0'])
  expect(tell({ type: 'result', worker: 'large', key: 'c', attempt: 0 })).toEqual([])
  expect(tell({ type: 'ended', key: 'c', attempt: 0, stopReason: 'completed', error: undefined })).toEqual(['finish c 0'])
  expect(tell({ type: 'closed', key: 'c' })).toEqual(['kept large c 0', 'begin d'])
})

test('the same rollout twice is one', () => {
  const { tell } = running()
  expect(tell({ type: 'submit', key: 'a' })).toEqual([])
})

test('a failure that may pass is tried again after a while, before what came later; then it stands', () => {
  const { tell, wait, state } = running({ retries: 1 })
  const fails = (attempt: number) => {
    tell({ type: 'result', worker: 'w', key: 'a', attempt })
    return tell({ type: 'ended', key: 'a', attempt, stopReason: 'failed', error: lost })
  }
  expect(fails(0)).toEqual(['supersede a 0 TOOL_SERVER_DIED', 'kept w a 0'])
  tell(beat('w'))
  tell({ type: 'drain', worker: 'w' })
  tell({ type: 'submit', key: 'b' })
  expect(wakeAt(state)).toBeLessThan(100)
  wait(200)
  expect(tell(hello('w', 1))).toEqual(['begin a'])
  tell({ type: 'begun', key: 'a', attempt: 1 })
  expect(fails(1)).toEqual(['finish a 1'])
})

test('what a silent worker had begins again elsewhere, and its late result is refused', () => {
  const { tell, wait } = running()
  expect(tell(hello('other', 1))).toEqual([])
  wait(20)
  tell(beat('other'))
  expect(wait(6)).toEqual(['dismiss w', 'fence w a 0', 'revoke w a 0', 'begin a'])
  expect(tell({ type: 'begun', key: 'a', attempt: 1 })).toEqual(['assign other a 1'])
  expect(tell({ type: 'result', worker: 'w', key: 'a', attempt: 0 })).toEqual(['fence w a 0'])
  expect(tell(beat('w'))).toEqual(['dismiss w'])
})

test('a worker that was not heard of for a while is assigned nothing until it is', () => {
  const { tell, wait } = create()
  tell(hello('w', 1))
  wait(16)
  expect(tell({ type: 'submit', key: 'a' })).toEqual([])
  expect(tell(beat('w'))).toEqual(['begin a'])
})

test('without a connection a worker has its grace, and no more than what is left of its lease', () => {
  const { tell, wait, state } = running()
  tell({ type: 'disconnect', worker: 'w' })
  expect(wait(14)).toEqual([])
  tell(hello('w', 1, [{ key: 'a', attempt: 0 }]))
  tell({ type: 'disconnect', worker: 'w' })
  expect(wait(15)).toEqual(['dismiss w', 'fence w a 0', 'revoke w a 0'])
  expect(wakeAt(state)).toBe(null)
})

test('leases do not end while this process stood still: what workers said meanwhile comes first', () => {
  const { tell, wait } = running()
  expect(wait(100, true)).toEqual([])
  tell(beat('w', [{ key: 'a', attempt: 0 }]))
  expect(wait(29)).toEqual([])
  expect(wait(1)).toEqual(['dismiss w', 'fence w a 0', 'revoke w a 0'])
})

const error: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: true, message: 'Lost.' }

/** Workers that run rollouts. `end` ends the named ones within milliseconds of each other and starts them again; then some seconds pass. */
function workers(names: readonly string[], keys: readonly string[], options: Parameters<typeof create>[0] = {}) {
  const scheduler = create(options)
  const { tell, wait, state } = scheduler
  const carryOut = (words: readonly string[]) => {
    for (const word of words) {
      const [type, key] = word.split(' ')
      if (type === 'begin') carryOut(tell({ type: 'begun', key: key!, attempt: (state.jobs.get(key!)!.attempt ?? -1) + 1 }))
    }
    return words
  }
  const beats = () => {
    for (const [name, { jobs }] of state.workers) {
      const holding = [...jobs].map((key) => ({ key, attempt: state.jobs.get(key)!.attempt ?? 0 }))
      carryOut(tell(beat(name, holding)))
    }
  }
  let starts = 0
  const greet = (name: string) => carryOut(tell({ ...hello(name, 4, [], `${++starts}`), leaseMs: 3_000, graceMs: 1_500 } as SchedulerEvent))
  for (const name of names) greet(name)
  for (const key of keys) carryOut(tell({ type: 'submit', key }))
  return {
    ...scheduler,
    beats,
    workerOf: (key: string) => state.jobs.get(key)!.worker!,
    beside: (key: string) => [...state.workers.get(state.jobs.get(key)!.worker!)!.jobs],
    end(...ends: readonly string[]) {
      const words = ends.flatMap((worker) => carryOut(tell({ type: 'exit', worker })))
      for (const name of ends) words.push(...greet(name))
      for (let round = 0; round < 5; round++) {
        beats()
        words.push(...carryOut(wait(1_000)))
      }
      beats()
      return words
    },
  }
}

test('a rollout that was lost with three workers has its next one for itself, and the others go on beside it', () => {
  const { end, workerOf, beside } = workers(['v', 'w'], ['a', 'b'])
  for (let loss = 0; loss < 3; loss++) end(workerOf('a'))
  expect(beside('a')).toEqual(['a'])
  expect(beside('b')).toEqual(['b'])
})

test('a rollout that ends three workers which it has for itself is given up, when no other was lost within the grace', () => {
  const { end, workerOf, beside, tell, state } = workers(['v', 'w'], ['a', 'b'])
  for (let loss = 0; loss < 5; loss++) expect(end(workerOf('a')).filter((word) => word.endsWith('last'))).toEqual([])
  expect(beside('a')).toEqual(['a'])
  const worker = workerOf('a')
  expect(end(worker)).toContain(`revoke ${worker} a 5 last`)
  expect(tell({ type: 'ended', key: 'a', attempt: 5, stopReason: 'failed', error })).toEqual(['finish a 5'])
  expect(state.jobs.get('b')).toMatchObject({ lossesAt: [], status: 'running' })
})

test('with maxLosses 1 the first worker that it has for itself is the last', () => {
  const { end, workerOf } = workers(['v', 'w'], ['a', 'b'], { maxLosses: 1 })
  for (let loss = 0; loss < 3; loss++) end(workerOf('a'))
  expect(end(workerOf('a')).some((word) => word.endsWith('a 3 last'))).toBe(true)
})

test.each([2, 3, 8])('thirty deaths of all of %i workers give no rollout up, whatever the order in which they are noticed', (count) => {
  const names = Array.from({ length: count }, (_, index) => `w${index}`)
  const keys = ['a', 'b', 'c']
  const { end, state } = workers(names, keys)
  for (let outage = 0; outage < 30; outage++) {
    const from = outage % count
    expect(end(...names.slice(from), ...names.slice(0, from)).filter((word) => word.endsWith('last'))).toEqual([])
  }
  expect(keys.filter((key) => state.jobs.get(key)!.status === 'running').length).toBeGreaterThan(0)
  expect(Math.max(...keys.map((key) => state.jobs.get(key)!.deaths))).toBeGreaterThan(9)
})

test('one worker runs no suspect while there are others, and none waits for ever', () => {
  const { end, state, beats, tell, wait } = workers(['v', 'w'], ['a', 'b', 'c'])
  for (let outage = 0; outage < 9; outage++) end('v', 'w')
  const running = ['a', 'b', 'c'].filter((key) => state.jobs.get(key)!.status === 'running')
  expect(running).toHaveLength(1)
  for (const key of ['a', 'b', 'c']) {
    const { worker, attempt } = state.jobs.get(key)!
    tell({ type: 'result', worker: worker!, key, attempt: attempt! })
    for (const word of tell({ type: 'closed', key })) {
      const [type, next] = word.split(' ')
      if (type === 'begin') tell({ type: 'begun', key: next!, attempt: 9 })
    }
    beats()
    wait(1)
  }
  expect(state.jobs.size).toBe(0)
})

test('a cancelled rollout leaves at once, also where it is about to be given up', () => {
  const { end, workerOf, tell, state } = workers(['v', 'w'], ['a', 'b'])
  for (let loss = 0; loss < 5; loss++) end(workerOf('a'))
  tell({ type: 'exit', worker: workerOf('a') })
  expect(state.jobs.get('a')!.status).toBe('doubted')
  expect(tell({ type: 'cancel', key: 'a' }).at(-1)).toBe('drop a')
})

test('what a worker was assigned and does not name for its lease begins again', () => {
  const { tell, wait } = running()
  for (let round = 0; round < 3; round++) {
    expect(tell(beat('w'))).toEqual([])
    wait(9)
  }
  expect(tell(beat('w'))).toEqual(['fence w a 0', 'revoke w a 0', 'begin a'])
})

test('a worker that comes again keeps what it has; what was on its way to it begins again, and is no loss', () => {
  const { tell, state } = running()
  tell({ type: 'disconnect', worker: 'w' })
  expect(tell({ type: 'submit', key: 'b' })).toEqual([])
  const current = { key: 'a', attempt: 0 }
  expect(tell(hello('w', 2, [current, { key: 'old', attempt: 3 }]))).toEqual(['fence w old 3', 'begin b'])
  expect(tell(hello('w', 2, [current]))).toEqual([])
  expect(tell({ type: 'begun', key: 'b', attempt: 0 })).toEqual(['assign w b 0'])
  expect(tell(hello('w', 2, [current]))).toEqual(['fence w b 0', 'revoke w b 0', 'begin b'])
  expect(state.jobs.get('b')!.deaths).toBe(0)
})

test('what a worker has that is not its own is fenced with every beat', () => {
  const { tell } = running()
  const current = { key: 'a', attempt: 0 }
  expect(tell(beat('w', [current, { key: 'a', attempt: 1 }]))).toEqual(['fence w a 1'])
})

test('a worker that left, or takes nothing more, gets nothing, also when it comes again; leaving is no loss', () => {
  const { tell, state } = running()
  tell({ type: 'submit', key: 'b' })
  expect(tell({ type: 'leave', worker: 'w' })).toEqual(['dismiss w', 'fence w a 0', 'revoke w a 0'])
  expect(state.jobs.get('a')!.deaths).toBe(0)
  expect(tell(hello('w', 1))).toEqual(['begin a'])
  expect(tell({ type: 'drain', worker: 'w' })).toEqual([])
  expect(tell({ type: 'begun', key: 'a', attempt: 1 })).toEqual([])
  expect(tell(hello('w', 1, [], '1', true))).toEqual([])
  expect(tell(hello('w', 1, [], '2'))).toEqual(['begin a'])
})

test('what a worker had whose process has ended begins again at once, and is a loss', () => {
  const { tell, state } = running()
  tell(hello('other', 1))
  expect(tell({ type: 'exit', worker: 'w' })).toEqual(['dismiss w', 'fence w a 0', 'revoke w a 0', 'begin a'])
  expect(state.jobs.get('a')!.deaths).toBe(1)
  expect(tell({ type: 'exit', worker: 'w' })).toEqual([])
  expect(tell({ type: 'disconnect', worker: 'w' })).toEqual([])
})

test('no more run at once than the concurrency, however many slots there are', () => {
  const { tell } = running({ concurrency: 1 })
  tell(hello('other', 4))
  expect(tell({ type: 'submit', key: 'b' })).toEqual([])
  tell({ type: 'result', worker: 'w', key: 'a', attempt: 0 })
  expect(tell({ type: 'closed', key: 'a' })).toEqual(['kept w a 0', 'begin b'])
})

test('a cancelled rollout leaves at once where nothing of it runs, else with what runs', () => {
  const { tell, state } = running()
  tell({ type: 'submit', key: 'b' })
  expect(tell({ type: 'cancel', key: 'b' })).toEqual(['drop b'])
  expect(tell({ type: 'cancel', key: 'a' })).toEqual(['stop w a 0'])
  tell({ type: 'result', worker: 'w', key: 'a', attempt: 0 })
  expect(tell({ type: 'ended', key: 'a', attempt: 0, stopReason: 'failed', error: lost })).toEqual(['finish a 0'])
  tell({ type: 'closed', key: 'a' })
  expect(tell({ type: 'submit', key: 'c' })).toEqual(['begin c'])
  expect(tell({ type: 'cancel', key: 'c' })).toEqual([])
  expect(tell({ type: 'begun', key: 'c', attempt: 0 })).toEqual(['drop c'])
  expect(state.jobs.size).toBe(0)
})

test('a cancelled rollout whose worker does not end it leaves all the same', () => {
  const { tell, wait } = running()
  expect(tell({ type: 'cancel', key: 'a' })).toEqual(['stop w a 0'])
  expect(wait(4)).toEqual([])
  expect(wait(1)).toEqual(['fence w a 0', 'revoke w a 0', 'drop a'])
})

test('a cancelled rollout whose worker is away leaves at once', () => {
  const { tell } = running()
  tell({ type: 'disconnect', worker: 'w' })
  expect(tell({ type: 'cancel', key: 'a' })).toEqual(['stop w a 0', 'fence w a 0', 'revoke w a 0', 'drop a'])
})
