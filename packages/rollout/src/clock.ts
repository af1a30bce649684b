/** The time and the timers of a process. */
export interface Clock {
  /** Milliseconds since a fixed moment. */
  now(): number
  /** Calls `run` in this many milliseconds. The returned function prevents that. */
  after(ms: number, run: () => void): () => void
  /** Calls `run` every so many milliseconds until the returned function is called. This alone does not keep the process alive. */
  every(ms: number, run: () => void): () => void
}

export const processClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  every(ms, run) {
    const timer = setInterval(run, ms).unref()
    return () => clearInterval(timer)
  },
}

/** Resolves in this many milliseconds, or when the signal aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const wake = () => {
      cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(ms, wake)
    signal?.addEventListener('abort', wake)
  })
}
