import type { AttemptName, WorkerHealth, WorkerStatus } from '@aworld-train/core'
import type { RolloutWorkers, WorkerGreeting, WorkerLink } from './rollout-workers.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState, WorkerState } from './scheduler/scheduler-state.ts'

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

/** A worker that has greeted, beside what the scheduler knows of it. */
interface WorkerRow {
  /** `null` once the worker is lost. */
  link: WorkerLink | null
  readonly slots: number
  /** Milliseconds since the epoch. */
  heardAt: number
  /** Attempts that were lost with it. */
  lostAttempts: number
}

/** Most lost workers that are still listed. */
const mostLost = 100

/** The runner's connections to its workers. What these report goes to the scheduler. */
export class WorkerLinks implements RolloutWorkers {
  readonly #options: WorkerLinksOptions
  /** In the order in which they greeted last. */
  readonly #rows = new Map<string, WorkerRow>()
  #isPaused = false

  constructor(options: WorkerLinksOptions) {
    this.#options = options
  }

  hello({ name, link, ...greeting }: WorkerGreeting): void {
    const lostAttempts = this.#rows.get(name)?.lostAttempts ?? 0
    this.#rows.delete(name)
    this.#rows.set(name, { link, slots: greeting.slots, heardAt: Date.now(), lostAttempts })
    const lost = [...this.#rows].filter(([, row]) => row.link === null)
    for (const [old] of lost.slice(0, -mostLost)) this.#rows.delete(old)
    // A worker may have lost its connection while its clocks were stopped.
    if (this.#isPaused) link.hold()
    else link.resume()
    this.#options.tell({ ...greeting, type: 'hello', worker: name })
  }

  beat(worker: string, holding: readonly AttemptName[]): void {
    const row = this.#rows.get(worker)
    if (row) row.heardAt = Date.now()
    this.#options.tell({ type: 'beat', worker, holding })
  }

  result(worker: string, { key, attempt }: AttemptName): void {
    this.#options.tell({ type: 'result', worker, key, attempt })
  }

  disconnect(worker: string): void {
    this.#options.tell({ type: 'disconnect', worker })
  }

  drain(worker: string): void {
    this.#options.tell({ type: 'drain', worker })
  }

  leave(worker: string): void {
    this.#options.tell({ type: 'leave', worker })
    this.#rows.delete(worker)
  }

  exit(worker: string): void {
    this.#options.tell({ type: 'exit', worker })
  }

  fail(error: Error): void {
    this.#options.fail(error)
  }

  rows(): WorkerHealth[] {
    const { workers, jobs } = this.#options.state
    const others = [...this.#rows].filter(([name]) => name !== thisProcess)
    return others.map(([name, { slots, heardAt, lostAttempts }]) => {
      const worker = workers.get(name)
      const assignments = Array.from(worker?.jobs ?? [], (key) => ({ key, attempt: jobs.get(key)!.attempt ?? 0 }))
      return { name, status: statusOf(worker), slots, heardAt, lostAttempts, assignments }
    })
  }

  /** The link of a worker; `undefined` where it is gone. */
  find(worker: string): WorkerLink | undefined {
    return this.#rows.get(worker)?.link ?? undefined
  }

  /** Carries out the part of a command that concerns workers alone. */
  carryOut(command: SchedulerCommand): void {
    if (command.type === 'fence') this.find(command.worker)?.fence?.(command)
    if (command.type === 'kept') this.find(command.worker)?.kept?.(command)
    const row = command.type === 'dismiss' && this.#rows.get(command.worker)
    if (!row) return
    row.link?.dismiss?.()
    row.link = null
  }

  /** Stops the clocks of all workers, or starts them again. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused
    for (const { link } of this.#rows.values()) isPaused ? link?.hold() : link?.resume()
  }

  /** An attempt was lost with its worker. */
  lostAttempt(worker: string): void {
    const row = this.#rows.get(worker)
    if (row) row.lostAttempts += 1
  }
}

function statusOf(worker: WorkerState | undefined): WorkerStatus {
  if (!worker) return 'lost'
  if (!worker.isConnected) return 'away'
  return worker.isDraining ? 'draining' : 'connected'
}
