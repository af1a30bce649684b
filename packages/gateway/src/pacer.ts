import { createFairQueue } from '@aworld-train/core'

/**
 * Lets large work onto the event loop piece by piece. If pieces took long, other events such as `/health` or a small call come before the
 * next piece. Owners take turns.
 */
export interface Pacer {
  /**
   * Runs `work` when its turn comes, which may be at once, and resolves to its result. Rejects with its error, or with the signal's reason.
   */
  run<T>(owner: object, signal: AbortSignal, work: () => T): Promise<T>
}

/**
 * A body of more bytes is large. Reading and rendering one costs a fraction of a millisecond for long texts, and up to 0.4 ms a kilobyte
 * for tools or short messages. Smaller bodies may come sixty at a time.
 */
export const largeBodyBytes = 4_096

/** Milliseconds that pieces run one after another before other events get their turn. */
const sliceMs = 5
/** Turns of the event loop between such slices. In each turn it accepts one new connection (libuv 1.52), and many may come at once. */
const turnsBetween = 32

/** `now` in milliseconds. */
export function createPacer(now: () => number = () => performance.now()): Pacer {
  const queue = createFairQueue<() => void>()
  /** Milliseconds that the pieces of this slice have taken. */
  let usedMs = 0
  let sliceEnds = false

  function runQueued(): void {
    while (usedMs < sliceMs && !queue.isEmpty()) {
      if (!sliceEnds) {
        sliceEnds = true
        setImmediate(endSlice, turnsBetween)
      }
      const began = now()
      queue.next()!()
      usedMs += now() - began
    }
  }

  /** Runs after the event loop has polled its sockets once more. */
  function endSlice(turns: number): void {
    if (usedMs >= sliceMs && turns > 1) {
      setImmediate(endSlice, turns - 1)
      return
    }
    usedMs = 0
    sliceEnds = false
    runQueued()
  }

  return {
    run: (owner, signal, work) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const piece = () => {
          signal.removeEventListener('abort', leave)
          try {
            resolve(work())
          } catch (error) {
            reject(error)
          }
        }
        const leave = () => {
          queue.remove(owner, piece)
          reject(signal.reason)
        }
        signal.addEventListener('abort', leave, { once: true })
        queue.add(owner, piece)
        runQueued()
      }),
  }
}
