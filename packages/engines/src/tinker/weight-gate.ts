import { orAborted } from '@aworld-train/core'

/** Admits many calls at once, or one exclusive piece of work. */
export interface WeightGate {
  /** Runs beside other calls, after exclusive work. Rejects with the signal's reason if that comes first. */
  pass<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Runs when the calls inside have ended. Later ones wait. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

export function createWeightGate(): WeightGate {
  let inside = 0
  let closed: PromiseWithResolvers<void> | null = null
  let emptied: PromiseWithResolvers<void> | null = null
  let last: Promise<unknown> = Promise.resolve()

  async function run<T>(work: () => Promise<T>): Promise<T> {
    const closing = Promise.withResolvers<void>()
    closed = closing
    try {
      if (inside > 0) {
        emptied = Promise.withResolvers()
        await emptied.promise
      }
      return await work()
    } finally {
      emptied = null
      closed = null
      closing.resolve()
    }
  }

  return {
    async pass(call, signal) {
      while (closed) await orAborted(closed.promise, signal)
      signal.throwIfAborted()
      inside++
      try {
        return await call()
      } finally {
        inside--
        if (inside === 0) emptied?.resolve()
      }
    },
    alone(work) {
      const result = last.then(() => run(work))
      last = result.catch(() => {})
      return result
    },
  }
}
