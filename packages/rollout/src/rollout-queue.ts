import { createSlots } from '@aworld-train/core'

/** Runs jobs first come, first served, `concurrency` at a time. */
export interface RolloutQueue {
  /** Resolves like `job`; rejects with the signal's reason when that aborts while the job still waits. */
  add<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T>
  queued(): number
  running(): number
  /** Resolves when nothing is queued or running. */
  idle(): Promise<void>
}

export function createRolloutQueue(concurrency: number): RolloutQueue {
  const slots = createSlots(concurrency, settle)
  const idlers: (() => void)[] = []
  const isIdle = () => slots.taken() === 0 && slots.waiting() === 0

  function settle(): void {
    if (isIdle()) for (const resolve of idlers.splice(0)) resolve()
  }

  return {
    async add(job, signal) {
      signal.throwIfAborted()
      if (!slots.tryTake()) await slots.take(signal)
      try {
        return await job()
      } finally {
        slots.give()
        settle()
      }
    },
    queued: slots.waiting,
    running: slots.taken,
    idle: () => (isIdle() ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve))),
  }
}
