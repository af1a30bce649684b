import { type Clock, processClock } from '../clock.ts'
import { type Schedule, schedule, wakeAt } from './schedule.ts'
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

/** Runs a scheduler on a clock. `carryOut` starts the work of a command and does not wait for it. */
export function createScheduler(
  state: SchedulerState,
  carryOut: (command: SchedulerCommand) => void,
  { clock = processClock, decide = schedule }: { readonly clock?: Clock | undefined; readonly decide?: Schedule | undefined } = {},
): Scheduler {
  const events: SchedulerEvent[] = []
  let isTelling = false
  let endTimer = () => {}
  let isClosed = false

  function tell(event: SchedulerEvent): void {
    events.push(event)
    if (isTelling) return
    isTelling = true
    try {
      for (let next = events.shift(); next; next = events.shift()) {
        for (const command of decide(state, next, clock.now())) carryOut(command)
      }
    } finally {
      isTelling = false
    }
    endTimer()
    const at = wakeAt(state)
    if (at === null || isClosed) return
    endTimer = clock.after(Math.max(0, Math.ceil(at - clock.now())), () => tell({ type: 'tick', isLate: clock.now() - at > lateMs }))
  }

  return {
    tell,
    close() {
      isClosed = true
      endTimer()
    },
  }
}
