import { pauseTrees } from './processes.ts'

/** The times in which all that runs in a workspace is stopped. */
export interface Pause {
  /** Does work while all that runs is stopped, so that no file changes. Works take turns. */
  during<Value>(work: () => Promise<Value>): Promise<Value>
  /** Resolves when no work keeps the workspace still. */
  over(): Promise<void>
}

/** `roots` resolves to the processes that are stopped with all below them. */
export function createPause(roots: () => Promise<readonly number[]>): Pause {
  let last: Promise<unknown> = Promise.resolve()
  return {
    during(work) {
      const turn = last.then(async () => {
        const resume = pauseTrees(await roots())
        try {
          return await work()
        } finally {
          resume()
        }
      })
      last = turn.catch(() => {})
      return turn
    },
    async over() {
      for (let seen: unknown; seen !== last; ) {
        seen = last
        await last
      }
    },
  }
}
