import { createScheduler } from './scheduler/scheduler.ts'
import { createSchedulerState, type SchedulerCommand } from './scheduler/scheduler-state.ts'
import { termsOfThisProcess, thisProcess } from './worker-links.ts'

/**
 * Lets the scheduler of rollouts run other work: each of the distinct `keys` once and in order, at most `slots` at a time. Resolves when
 * all have ended; rejects with the first rejection of `work`.
 */
export async function runInSlots(keys: readonly string[], slots: number, work: (key: string) => Promise<void>): Promise<void> {
  if (keys.length === 0) return
  const state = createSchedulerState({ retries: 0, maxLosses: 1, concurrency: slots })
  const scheduler = createScheduler(state, carryOut)
  const { promise, resolve, reject } = Promise.withResolvers<void>()

  function carryOut(command: SchedulerCommand): void {
    if (command.type === 'begin') scheduler.tell({ type: 'begun', key: command.key, attempt: 0 })
    if (command.type === 'assign') work(command.key).then(() => close(command.key), reject)
  }

  function close(key: string): void {
    scheduler.tell({ type: 'closed', key })
    if (state.jobs.size === 0) resolve()
  }

  for (const key of keys) scheduler.tell({ type: 'submit', key })
  scheduler.tell({ ...termsOfThisProcess(slots), type: 'hello', worker: thisProcess })
  try {
    await promise
  } finally {
    scheduler.close()
  }
}
