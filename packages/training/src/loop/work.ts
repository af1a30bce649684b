import { setImmediate } from 'node:timers/promises'

/** Tracks work whose starter may not wait for it. */
export interface Work {
  /** Resolves to the result of `start`. If it rejects and nobody listens, the process continues. */
  run<T>(start: () => Promise<T>): Promise<T>
  /** Resolves when no work is under way, not even work that was started right after the last ended. */
  settled(): Promise<void>
}

export function createWork(): Work {
  const pending = new Set<Promise<unknown>>()
  return {
    run(start) {
      const work = start()
      pending.add(work)
      const done = () => void pending.delete(work)
      work.then(done, done)
      return work
    },
    async settled() {
      while (pending.size > 0) {
        await Promise.allSettled(pending)
        await setImmediate()
      }
    },
  }
}
