import { createFairQueue } from '@aworld-train/core'

/**
 * Lets large work onto the event loop piece by piece: where pieces took long, whatever else is due comes before the next, such as
 * `/health` or a small call. Owners take turns.
 */
export interface Pacer {
  /** Runs `work` when its turn has come, which may be at once, and resolves to its result. Rejects with its error, or with the signal's reason. */
  run<T>(owner: object, signal: AbortSignal, work: () => T): Promise<T>
}

/**
 * A body of more bytes is large. To read and render one costs a fraction of a millisecond as long texts, and up to 0.4 ms a kilobyte as
 * tools or short messages: those below this may come sixty at a time.
 */
export const largeBodyBytes = 4_096

/** How long pieces run one after another before other events get their turn, in milliseconds. */
const sliceMs = 5
/** Turns of the event loop before the next pieces then. In each it accepts one new connection (libuv 1.52), and many may come at once. */
const turnsBetween = 32

/** `now` in milliseconds. */
export function createPacer(now: () => number = () => performance.now()): Pacer {
  const queue = createFairQueue<() => void>()
  /** How long the pieces of this slice have taken. */
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

  /** Runs when the event loop has polled its sockets once more. */
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
