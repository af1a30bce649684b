import { createFairQueue } from '@aworld-train/core'

/**
 * Lets large work onto the event loop piece by piece: where a piece took long, whatever else is due comes before the next, such as
 * `/health` or a small call. Owners take turns.
 */
export interface Pacer {
  /** Resolves when the caller may work; rejects with the signal's reason. */
  pass(owner: object, signal: AbortSignal): Promise<void>
}

/**
 * A body of more bytes is large. To read and render one costs a fraction of a millisecond as long texts, and up to 0.4 ms a kilobyte as
 * tools or short messages: those below this may come sixty at a time.
 */
export const largeBodyBytes = 4_096

/** No piece begins in a turn of the event loop in which others have had so long. */
const sliceMs = 5

/** `now` in milliseconds. */
export function createPacer(now: () => number = () => performance.now()): Pacer {
  const queue = createFairQueue<() => void>()
  /** When the first piece of this turn of the event loop began; `null` where there is none. */
  let began: number | null = null
  const beginTurn = () => {
    const go = queue.next()
    began = null
    if (!go) return
    startTurn()
    go()
  }
  const startTurn = () => {
    began = now()
    // Runs when the event loop has polled its sockets once more.
    setImmediate(beginTurn)
  }
  return {
    async pass(owner, signal) {
      signal.throwIfAborted()
      if (began === null) {
        startTurn()
        return
      }
      if (queue.isEmpty() && now() - began < sliceMs) return
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
