import { createWaitingLine } from '@aworld-train/core'

/** A limit over all calls of a rollout. The most that a call may use is reserved for it until it has ended, so that parallel calls do not pass the limit. */
export interface Budget {
  /**
   * Reserves `most` for a call, or the rest of the budget where no other call has a reservation: 0 where all is spent. `null` where
   * the call has to wait until others have ended, which may use less than is reserved for them.
   */
  tryHold(most: number): number | null
  /** As `tryHold`, in the order in which calls asked. Rejects with the signal's reason. */
  hold(most: number, signal: AbortSignal): Promise<number>
  /** Ends a call's reservation. What the call used counts as spent by then. */
  release(amount: number): void
  /** How many calls wait. */
  waiting(): number
}

/** A budget of `limit`; `spent` returns what ended calls have used. */
export function createBudget(limit: number, spent: () => number): Budget {
  /** Waiting calls, each with the most that it may use. */
  const line = createWaitingLine<number, number>(wake)
  let holders = 0
  let sum = 0

  function take(most: number): number | null {
    const used = spent()
    const room = limit - used - sum
    if (holders > 0 && most > room && used < limit) return null
    const amount = Math.max(0, Math.min(most, room))
    holders++
    sum += amount
    return amount
  }

  function wake(): void {
    for (let most = line.first(); most !== undefined; most = line.first()) {
      const amount = take(most)
      if (amount === null) return
      line.admit(amount)
    }
  }

  return {
    tryHold: (most) => (line.size() > 0 ? null : take(most)),
    hold(most, signal) {
      const grant = line.wait(most, signal)
      wake()
      return grant
    },
    release(amount) {
      holders--
      // Floating-point sums of dollars may leave a remainder.
      sum = holders === 0 ? 0 : sum - amount
      wake()
    },
    waiting: () => line.size(),
  }
}
