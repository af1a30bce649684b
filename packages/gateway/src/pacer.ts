import { createFairQueue } from '@aworld-train/core'

/**
 * Lets large work onto the event loop piece by piece: between two pieces comes whatever else is due, such as `/health` or a
 * small call. Owners take turns.
 */
export interface Pacer {
  /** Resolves when the caller may work, at once where nobody else does; rejects with the signal's reason. */
  pass(owner: object, signal: AbortSignal): Promise<void>
}

/**
 * A body of more bytes is large. To read and render one costs a fraction of a millisecond as long texts, and up to 0.4 ms a kilobyte as
 * tools or short messages: those below this may come sixty at a time.
 */
export const largeBodyBytes = 4_096

export function createPacer(): Pacer {
  const queue = createFairQueue<() => void>()
  let free = true
  const letNext = () => {
    const go = queue.next()
    free = go === undefined
    if (!go) return
    go()
    // Runs when the event loop has polled its sockets once more.
    setImmediate(letNext)
  }
  return {
    async pass(owner, signal) {
      signal.throwIfAborted()
      if (free) {
        free = false
        setImmediate(letNext)
        return
      }
      await new Promise<void>((resolve, reject) => {
        const go = () => {
          signal.removeEventListener('abort', leave)
          resolve()
        }
        const leave = () => {
          queue.remove(owner, go)
          reject(signal.reason)
        }
        queue.add(owner, go)
        signal.addEventListener('abort', leave, { once: true })
      })
    },
  }
}
