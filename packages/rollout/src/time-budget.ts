/** A deadline in running time: while `hold` is in force, no time passes. */
export interface TimeBudget {
  /** Stops the clock until the returned function is called. */
  hold(): () => void
  stop(): void
}

/** Calls `onSpent` after `budgetMs`, not counting the times when the clock was stopped. */
export function createTimeBudget(budgetMs: number, onSpent: () => void): TimeBudget {
  let remainingMs = budgetMs
  let since = performance.now()
  let holds = 0
  let stopped = false
  let timer: NodeJS.Timeout | null = setTimeout(onSpent, remainingMs)

  return {
    hold() {
      if (holds++ === 0 && timer) {
        clearTimeout(timer)
        timer = null
        remainingMs -= performance.now() - since
      }
      let released = false
      return () => {
        if (released) return
        released = true
        if (--holds > 0 || stopped) return
        since = performance.now()
        timer = setTimeout(onSpent, Math.max(0, remainingMs))
      }
    },
    stop() {
      stopped = true
      if (timer) clearTimeout(timer)
      timer = null
    },
  }
}
