import type { RolloutWorkers, WorkerLink } from './rollout-workers.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState } from './scheduler/scheduler-state.ts'
import { createWorkerRows } from './worker-rows.ts'

/** The name of the worker that is this process. */
export const thisProcess = 'this process'

/** Greeting of this process as a worker, which is never away and never lost. */
export const termsOfThisProcess = (slots: number) => ({
  slots,
  leaseMs: Number.POSITIVE_INFINITY,
  graceMs: 0,
  stopMs: Number.POSITIVE_INFINITY,
  incarnation: thisProcess,
  isDraining: false,
  holding: [],
})

export interface WorkerLinksOptions {
  readonly state: SchedulerState
  readonly tell: (event: SchedulerEvent) => void
  /** Called when no worker can be had. */
  readonly fail: (error: Error) => void
}

/** The runner's connections to its workers, and the reports about these to its scheduler. */
export interface WorkerLinks {
  readonly workers: RolloutWorkers
  /** The link of a worker that was assigned something. */
  of(worker: string): WorkerLink
  /** The link of a worker that may be gone. */
  find(worker: string): WorkerLink | undefined
  /** Carries out the part of a command that concerns workers alone. */
  carryOut(command: SchedulerCommand): void
  /** Stops the clocks of all workers, or starts them again. */
  pause(paused: boolean): void
  /** An attempt was lost with its worker. */
  lostAttempt(worker: string): void
}

export function createWorkerLinks({ state, tell, fail }: WorkerLinksOptions): WorkerLinks {
  const links = new Map<string, WorkerLink>()
  const rows = createWorkerRows(state)
  let isPaused = false

  const workers: RolloutWorkers = {
    hello({ name, link, ...greeting }) {
      links.set(name, link)
      if (name !== thisProcess) rows.hello(name, greeting.slots)
      // A worker may have lost its connection while its clocks were stopped.
      if (isPaused) link.hold()
      else link.resume()
      tell({ ...greeting, type: 'hello', worker: name })
    },
    beat(worker, holding) {
      rows.heard(worker)
      tell({ type: 'beat', worker, holding })
    },
    result: (worker, { key, attempt }) => tell({ type: 'result', worker, key, attempt }),
    disconnect: (worker) => tell({ type: 'disconnect', worker }),
    drain: (worker) => tell({ type: 'drain', worker }),
    exit: (worker) => tell({ type: 'exit', worker }),
    leave(worker) {
      tell({ type: 'leave', worker })
      rows.left(worker)
    },
    fail,
    rows: rows.rows,
  }

  return {
    workers,
    of: (worker) => links.get(worker)!,
    find: (worker) => links.get(worker),
    carryOut(command) {
      if (command.type === 'fence') links.get(command.worker)?.fence?.(command)
      if (command.type === 'kept') links.get(command.worker)?.kept?.(command)
      if (command.type !== 'dismiss') return
      links.get(command.worker)?.dismiss?.()
      links.delete(command.worker)
    },
    pause(paused) {
      isPaused = paused
      for (const link of links.values()) paused ? link.hold() : link.resume()
    },
    lostAttempt: rows.lostAttempt,
  }
}
