/** Words of the pool's control block (int32). */
export const word = {
  /** Raised to start a command. Workers wait on it. */
  epoch: 0,
  command: 1,
  done: 2,
  barrierCount: 3,
  /** Raised when all workers are at the barrier. Workers wait on it. */
  barrierGeneration: 4,
  nextTask: 5,
  /** 1 after a worker has died. */
  failed: 6,
  /** The epoch that all workers have finished. The main thread waits on it. */
  finished: 7,
} as const

/** Command number that ends a worker. */
export const exitCommand = -1

/** How long a barrier waits for a computing peer before it counts as hung. */
const barrierDeadlineMs = 600_000

/** How long a worker sleeps before it checks again for a command. */
export const idleWaitMs = 60_000

/** Waits until all `threads` are here. Throws if a peer died or the deadline passed. */
export function barrier(words: Int32Array, base: number, threads: number): void {
  const generation = Atomics.load(words, base + word.barrierGeneration)
  if (Atomics.add(words, base + word.barrierCount, 1) === threads - 1) {
    // The count is cleared before the generation rises, because a woken worker may reach the next barrier at once.
    Atomics.store(words, base + word.barrierCount, 0)
    Atomics.add(words, base + word.barrierGeneration, 1)
    Atomics.notify(words, base + word.barrierGeneration)
    return
  }
  while (Atomics.load(words, base + word.barrierGeneration) === generation) {
    if (Atomics.load(words, base + word.failed) !== 0) throw new Error('Another worker of the pool failed.')
    const outcome = Atomics.wait(words, base + word.barrierGeneration, generation, barrierDeadlineMs)
    if (outcome === 'timed-out') throw new Error(`Another worker did not reach the barrier within ${barrierDeadlineMs} ms.`)
  }
}
