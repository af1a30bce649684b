import { type AttemptName, TrainError, type WorkerResult } from '@aworld-train/core'

/** An attempt that runs on a worker, or whose result the coordinator has not confirmed. */
export interface WorkerAttempt extends AttemptName {
  readonly controller: AbortController
  /** `null` while it runs. */
  result: WorkerResult | null
}

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

/** The attempts that a worker holds. */
export class WorkerAttempts {
  readonly #attempts = new Map<string, WorkerAttempt>()

  get size(): number {
    return this.#attempts.size
  }

  /** Returns `null` for an attempt that is held already. */
  begin({ key, attempt }: AttemptName): WorkerAttempt | null {
    const id = idOf({ key, attempt })
    if (this.#attempts.has(id)) return null
    const entry: WorkerAttempt = { key, attempt, controller: new AbortController(), result: null }
    this.#attempts.set(id, entry)
    return entry
  }

  names(): AttemptName[] {
    return Array.from(this.#attempts.values(), ({ key, attempt }) => ({ key, attempt }))
  }

  /** Results that the coordinator has not confirmed. */
  results(): WorkerResult[] {
    return Array.from(this.#attempts.values(), ({ result }) => result).filter((result) => result !== null)
  }

  /** Whether the attempt is still held. A later one of its name is another. */
  has(entry: WorkerAttempt): boolean {
    return this.#attempts.get(idOf(entry)) === entry
  }

  /** Tells a running attempt to stop. It stays held until its result is confirmed. */
  cancel(name: AttemptName, message: string): void {
    const entry = this.#attempts.get(idOf(name))
    if (entry?.result === null) entry.controller.abort(new TrainError('ROLLOUT_CANCELLED', message))
  }

  /** Stops an attempt and forgets it. */
  drop(name: AttemptName, message: string): void {
    this.cancel(name, message)
    this.#attempts.delete(idOf(name))
  }

  dropAll(why: string): void {
    for (const name of this.names()) this.drop(name, `Rollout "${name.key}": ${why}.`)
  }

  /** The coordinator has confirmed the result of an attempt. */
  confirm(name: AttemptName): void {
    if (this.#attempts.get(idOf(name))?.result) this.#attempts.delete(idOf(name))
  }
}
