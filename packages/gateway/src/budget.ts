import { createWaitingLine } from '@aworld-train/core'

/**
 * A limit over all calls of a rollout. Each call reserves the most that it may use until it ends, so that parallel
 * calls do not exceed the limit.
 */
export interface Budget {
  /**
   * Reserves `most` for a call, or the rest of the budget if no other call has a reservation: 0 when all is spent. `null` means that the
   * call has to wait for others to end, because they may use less than they have reserved.
   */
  tryHold(most: number): number | null
  /** Like `tryHold`, but waits. Calls get their reservations in the order in which they asked. Rejects with the signal's reason. */
  hold(most: number, signal: AbortSignal): Promise<number>
  /** Ends a call's reservation. By then, `spent` includes what the call used. */
  release(amount: number): void
  /** Number of calls that wait. */
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

/** Parts of budgets that a call has reserved. */
export interface Reservation {
  /** The reserved amounts, in the order of their budgets. */
  readonly amounts: readonly number[]
  /** Ends the reservation. */
  release(): void
}

/** The most that a call may use of a budget. */
export interface Claim {
  readonly budget: Budget
  readonly most: number
}

/**
 * Reserves from each budget in turn, and waits where the reservations of other calls leave too little. `beforeWaiting` is called before
 * each wait. Rejects with the signal's reason, and then holds nothing.
 */
export async function reserve(claims: readonly Claim[], signal: AbortSignal, beforeWaiting = () => {}): Promise<Reservation> {
  const amounts: number[] = []
  const release = () => {
    for (const [index, amount] of amounts.entries()) claims[index]!.budget.release(amount)
  }
  try {
    for (const { budget, most } of claims) {
      let amount = budget.tryHold(most)
      if (amount === null) {
        beforeWaiting()
        amount = await budget.hold(most, signal)
      }
      amounts.push(amount)
    }
    return { amounts, release }
  } catch (cause) {
    release()
    throw cause
  }
}
