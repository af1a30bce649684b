import { createWaitingLine } from '@aworld-train/core'

/** What the calls of a rollout may use together: what a call may use is held for it until it has ended, so that parallel calls do not pass the limit. */
export interface Budget {
  /**
   * Holds `most` for a call, or what is left where no other call holds anything: 0 where all is spent. `null` where the call has to
   * wait until others have ended, which may use less than they hold.
   */
  tryHold(most: number): number | null
  /** As `tryHold`, when it is this call's turn: who asked first holds first. Rejects with the signal's reason. */
  hold(most: number, signal: AbortSignal): Promise<number>
  /** The call has ended: what it used is spent, and what was held for it is free. */
  release(amount: number): void
  /** How many calls wait. */
  waiting(): number
}

/** `spent` says what calls that have ended have used. */
export function createBudget(limit: number, spent: () => number): Budget {
  /** Each by the most that it may use. */
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
      // Sums of dollars are not exact.
      sum = holders === 0 ? 0 : sum - amount
      wake()
    },
    waiting: () => line.size(),
  }
}
