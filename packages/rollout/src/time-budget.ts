import { type Clock, processClock } from './clock.ts'

/** A deadline in running time: while `hold` is in force, no time passes. */
export interface TimeBudget {
  /** Stops the clock until the returned function is called. */
  hold(): () => void
  stop(): void
}

/** Calls `onSpent` after `budgetMs`, not counting the times when the clock was stopped. */
export function createTimeBudget(budgetMs: number, onSpent: () => void, clock: Clock = processClock): TimeBudget {
  let remainingMs = budgetMs
  let since = clock.now()
  let holds = 0
  let stopped = false
  let endTimer: (() => void) | null = clock.after(remainingMs, onSpent)

  return {
    hold() {
      if (holds++ === 0 && endTimer) {
        endTimer()
        endTimer = null
        remainingMs -= clock.now() - since
      }
      let released = false
      return () => {
        if (released) return
        released = true
        if (--holds > 0 || stopped) return
        since = clock.now()
        endTimer = clock.after(Math.max(0, remainingMs), onSpent)
      }
    },
    stop() {
      stopped = true
      endTimer?.()
      endTimer = null
    },
  }
}
