import type { ErrorRecord } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { schedule, wakeAt } from './schedule.ts'
import { createSchedulerState, type SchedulerEvent } from './scheduler-state.ts'

const lost: ErrorRecord = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'The server ended.' }
const hello = (worker: string, slots: number, holding: { key: string; attempt: number }[] = []): SchedulerEvent => ({
  type: 'hello',
  worker,
  slots,
  leaseMs: 30,
  holding,
})

/** A scheduler whose commands are written as words, each event one millisecond after the one before. */
function create({ retries = 2, maxLosses = 3 } = {}) {
  const state = createSchedulerState({ retries, maxLosses })
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
    wait: (milliseconds: number) => {
      now += milliseconds
      return schedule(state, { type: 'tick' }, now).map(words)
    },
  }
}

/** A rollout that worker `w` runs in attempt 0. */
function running(options?: { retries?: number; maxLosses?: number }) {
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
  tell({ type: 'beat', worker: 'w' })
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
  tell({ type: 'beat', worker: 'other' })
  expect(wait(6)).toEqual(['dismiss w', 'revoke a 0', 'begin a'])
  expect(tell({ type: 'begun', key: 'a', attempt: 1 })).toEqual(['assign other a 1'])
  expect(tell({ type: 'result', worker: 'w', key: 'a', attempt: 0 })).toEqual(['fence w a 0'])
  expect(tell({ type: 'beat', worker: 'w' })).toEqual(['dismiss w'])
})

test('with its third lost worker a rollout fails, whatever else failed before', () => {
  const { tell } = running()
  expect(tell(hello('w', 1))).toEqual(['revoke a 0', 'begin a'])
  tell({ type: 'begun', key: 'a', attempt: 1 })
  expect(tell(hello('w', 1))).toEqual(['revoke a 1', 'begin a'])
  tell({ type: 'begun', key: 'a', attempt: 2 })
  expect(tell(hello('w', 1))).toEqual(['revoke a 2 last'])
  const error: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: false, message: 'Lost.' }
  expect(tell({ type: 'ended', key: 'a', attempt: 2, stopReason: 'failed', error })).toEqual(['finish a 2'])
})

test('a loss that is the result of an attempt has the same budget, beside that of failures', () => {
  const { tell } = running({ retries: 0, maxLosses: 2 })
  const error: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: true, message: 'Lost.' }
  const loses = (attempt: number) => {
    tell({ type: 'result', worker: 'w', key: 'a', attempt })
    return tell({ type: 'ended', key: 'a', attempt, stopReason: 'failed', error })
  }
  expect(loses(0)).toEqual(['supersede a 0 WORKER_LOST', 'kept w a 0', 'begin a'])
  tell({ type: 'begun', key: 'a', attempt: 1 })
  expect(loses(1)).toEqual(['finish a 1'])
})

test('a worker that greets again keeps what it has, and loses what it has no more', () => {
  const { tell } = running()
  tell({ type: 'disconnect', worker: 'w' })
  expect(tell({ type: 'submit', key: 'b' })).toEqual([])
  expect(
    tell(
      hello('w', 2, [
        { key: 'a', attempt: 0 },
        { key: 'old', attempt: 3 },
      ]),
    ),
  ).toEqual(['fence w old 3', 'begin b'])
  expect(tell(hello('w', 2, [{ key: 'a', attempt: 0 }]))).toEqual([])
  expect(tell({ type: 'begun', key: 'b', attempt: 0 })).toEqual(['assign w b 0'])
})

test('a worker that left, or takes nothing more, gets nothing, and leaving is no loss', () => {
  const { tell, state } = running()
  tell({ type: 'submit', key: 'b' })
  expect(tell({ type: 'leave', worker: 'w' })).toEqual(['revoke a 0'])
  expect(state.jobs.get('a')!.losses).toBe(0)
  expect(tell(hello('w', 1))).toEqual(['begin a'])
  expect(tell({ type: 'drain', worker: 'w' })).toEqual([])
  expect(tell({ type: 'begun', key: 'a', attempt: 1 })).toEqual([])
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

test('a cancelled rollout whose worker is lost leaves', () => {
  const { tell, wait } = running({ maxLosses: 1 })
  tell({ type: 'cancel', key: 'a' })
  expect(wait(30)).toEqual(['dismiss w', 'revoke a 0', 'drop a'])
})
