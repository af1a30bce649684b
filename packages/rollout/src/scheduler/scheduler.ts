import { schedule, wakeAt } from './schedule.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState } from './scheduler-state.ts'

export interface Scheduler {
  /** Tells of an event; its commands are carried out before this returns, or, within a command, before the outer call does. */
  tell(event: SchedulerEvent): void
  /** Ends the timer. */
  close(): void
}

/** Runs a scheduler by the clock of this process. `carryOut` starts what a command asks for and does not wait for it. */
export function createScheduler(state: SchedulerState, carryOut: (command: SchedulerCommand) => void): Scheduler {
  const events: SchedulerEvent[] = []
  let isTelling = false
  let timer: NodeJS.Timeout | undefined

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
    timer = at === null ? undefined : setTimeout(tell, Math.max(0, Math.ceil(at - performance.now())), { type: 'tick' })
  }

  return { tell, close: () => clearTimeout(timer) }
}
