import { schedule, wakeAt } from './schedule.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState } from './scheduler-state.ts'

export interface Scheduler {
  /**
   * Reports an event. Its commands are carried out before this call returns, or, from within a command, before the outermost call returns.
   */
  tell(event: SchedulerEvent): void
  /** Ends the timer. */
  close(): void
}

/** A tick this late means that this process stood still. */
const lateMs = 2_000

/** Runs a scheduler on the clock of this process. `carryOut` starts the work of a command and does not wait for it. */
export function createScheduler(state: SchedulerState, carryOut: (command: SchedulerCommand) => void): Scheduler {
  const events: SchedulerEvent[] = []
  let isTelling = false
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function tell(event: SchedulerEvent): void {
    events.push(event)
    if (isTelling) return
    isTelling = true
    try {
      for (let next = events.shift(); next; next = events.shift()) {
        for (const command of schedule(state, next, performance.now())) carryOut(command)
      }
    } finally {
      isTelling = false
    }
    clearTimeout(timer)
    const at = wakeAt(state)
    if (at === null || isClosed) return
    timer = setTimeout(
      () => tell({ type: 'tick', isLate: performance.now() - at > lateMs }),
      Math.max(0, Math.ceil(at - performance.now())),
    )
  }

  return {
    tell,
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
