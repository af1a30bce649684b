import type { AttemptName, ErrorRecord } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { schedule, wakeAt } from './schedule.ts'
import { createSchedulerState, type SchedulerEvent } from './scheduler-state.ts'

const lost: ErrorRecord = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'The server ended.' }
const hello = (worker: string, slots: number, holding: AttemptName[] = [], incarnation = '1', isDraining = false): SchedulerEvent => ({
  ...{ type: 'hello', worker, incarnation, isDraining, holding, slots, leaseMs: 30, graceMs: 15, stopMs: 5 },
})
const beat = (worker: string, holding: AttemptName[] = []): SchedulerEvent => ({ type: 'beat', worker, holding })

/** A scheduler whose commands are written as words, each event one millisecond after the one before. */
function create({ retries = 2, maxLosses = 3, concurrency = 8 } = {}) {
  const state = createSchedulerState({ retries, maxLosses, concurrency })
  let now = 0
  const words = ({ type, ...rest }: object & { type: string }) =>
    [
      type,
      ...Object.values(rest).map((value) => (typeof value === 'object' ? (value as ErrorRecord).code : value === true ? 'last' : value)),
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

test('with its third lost worker a rollout fails, whatever else failed before', () => {
  const { tell } = running()
  for (const attempt of [0, 1]) {
    expect(tell(hello('w', 1, [], `${attempt + 2}`))).toEqual([`fence w a ${attempt}`, `revoke w a ${attempt}`, 'begin a'])
    tell({ type: 'begun', key: 'a', attempt: attempt + 1 })
  }
  expect(tell(hello('w', 1, [], '4'))).toEqual(['fence w a 2', 'revoke w a 2 last'])
  const error: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: true, message: 'Lost.' }
  expect(tell({ type: 'ended', key: 'a', attempt: 2, stopReason: 'failed', error })).toEqual(['finish a 2'])
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
  expect(state.jobs.get('b')!.losses).toBe(0)
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
  expect(state.jobs.get('a')!.losses).toBe(0)
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
  expect(state.jobs.get('a')!.losses).toBe(1)
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
