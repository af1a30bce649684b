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
  release(held: number): void
  /** How many calls wait. */
  waiting(): number
}

interface Waiting {
  readonly most: number
  go(held: number): void
}

/** `spent` says what calls that have ended have used. */
export function createBudget(limit: number, spent: () => number): Budget {
  const queue: Waiting[] = []
  let holders = 0
  let sum = 0

  function take(most: number): number | null {
    const used = spent()
    const left = limit - used - sum
    if (holders > 0 && most > left && used < limit) return null
    const held = Math.max(0, Math.min(most, left))
    holders++
    sum += held
    return held
  }

  function wake(): void {
    for (let first = queue[0]; first; first = queue[0]) {
      const held = take(first.most)
      if (held === null) return
      queue.shift()
      first.go(held)
    }
  }

  return {
    tryHold: (most) => (queue.length > 0 ? null : take(most)),
    hold(most, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason)
          return
        }
        const waiting: Waiting = {
          most,
          go(held) {
            signal.removeEventListener('abort', leave)
            resolve(held)
          },
        }
        const leave = () => {
          queue.splice(queue.indexOf(waiting), 1)
          reject(signal.reason)
          // Those behind it may need less.
          wake()
        }
        queue.push(waiting)
        signal.addEventListener('abort', leave, { once: true })
        wake()
      })
    },
    release(held) {
      holders--
      // Sums of dollars are not exact.
      sum = holders === 0 ? 0 : sum - held
      wake()
    },
    waiting: () => queue.length,
  }
}
