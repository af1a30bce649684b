import { setImmediate } from 'node:timers/promises'

/** Work under way that its starter may not wait for. */
export interface Work {
  /** What `start` resolves to. Where it rejects and nobody listens, the process goes on. */
  run<T>(start: () => Promise<T>): Promise<T>
  /** Resolves when nothing is under way, nor was started by what followed it at once. */
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
