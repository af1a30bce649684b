import type { WorkerHealth, WorkerStatus } from '@aworld-train/core'
import type { SchedulerState, WorkerState } from './scheduler/scheduler-state.ts'

/** Workers outside this process that have greeted, for observers. */
export interface WorkerRows {
  hello(name: string, slots: number): void
  heard(name: string): void
  /** An attempt was lost with it. */
  lostAttempt(name: string): void
  /** It left on its own word. */
  left(name: string): void
  rows(): readonly WorkerHealth[]
}

/** Most lost workers that are still listed. */
const mostLost = 100

export function createWorkerRows({ workers, jobs }: SchedulerState): WorkerRows {
  const seen = new Map<string, { slots: number; heardAt: number; lostAttempts: number }>()
  return {
    hello(name, slots) {
      const lostAttempts = seen.get(name)?.lostAttempts ?? 0
      seen.delete(name)
      seen.set(name, { slots, heardAt: Date.now(), lostAttempts })
      const lost = [...seen.keys()].filter((each) => each !== name && !workers.has(each))
      for (const old of lost.slice(0, -mostLost)) seen.delete(old)
    },
    heard(name) {
      const worker = seen.get(name)
      if (worker) worker.heardAt = Date.now()
    },
    lostAttempt(name) {
      const worker = seen.get(name)
      if (worker) worker.lostAttempts += 1
    },
    left: (name) => void seen.delete(name),
    rows: () =>
      Array.from(seen, ([name, facts]) => {
        const worker = workers.get(name)
        const assignments = Array.from(worker?.jobs ?? [], (key) => ({ key, attempt: jobs.get(key)!.attempt ?? 0 }))
        return { name, status: statusOf(worker), ...facts, assignments }
      }),
  }
}

function statusOf(worker: WorkerState | undefined): WorkerStatus {
  if (!worker) return 'lost'
  if (!worker.isConnected) return 'away'
  return worker.isDraining ? 'draining' : 'connected'
}
