import type { AttemptExecutor, WorkerHealth } from '@aworld-train/core'
import type { AttemptName } from '@aworld-train/protocol'

/** A place where agents run, as the coordinator reaches it. */
export interface WorkerLink extends AttemptExecutor {
  /** The attempt is not the worker's any more: whatever it still does of it is refused. */
  fence?(attempt: AttemptName): void
  /** The result of the attempt is dealt with; it need not be sent again. */
  kept?(attempt: AttemptName): void
  /** The worker was silent for its lease, or is unknown: what it had begins again elsewhere, and it has to greet again. */
  dismiss?(): void
}

export interface WorkerGreeting {
  readonly name: string
  /** Attempts that it runs at once. */
  readonly slots: number
  /** How long it may be silent, in milliseconds, before what it has begins again elsewhere. */
  readonly leaseMs: number
  /** Attempts that it has from before, running or with a result that was not kept yet. */
  readonly holding: readonly AttemptName[]
  readonly link: WorkerLink
}

/** The workers of a runner. A worker is asked for nothing before it has greeted. */
export interface RolloutWorkers {
  /** A worker is there, or there again: attempts that are still its own go on, and others are fenced. */
  hello(greeting: WorkerGreeting): void
  /** The worker was heard of: its lease begins anew. */
  beat(name: string): void
  /** Its connection ended; until its lease ends it may greet again. */
  disconnect(name: string): void
  /** It takes no further attempts. */
  drain(name: string): void
  /** It is gone: what it has begins again at once, and does not count as lost. */
  leave(name: string): void
  /** Those outside this process; one that was lost stays until it greets again. */
  rows(): readonly WorkerHealth[]
}
