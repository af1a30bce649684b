import type { AttemptExecutor, WorkerHealth } from '@aworld-train/core'
import type { AttemptName } from '@aworld-train/protocol'
import type { WorkerTerms } from './scheduler/scheduler-state.ts'

/** A place where agents run, as the coordinator reaches it. */
export interface WorkerLink extends AttemptExecutor {
  /** The hash of the agent that it has; absent for this process. */
  readonly agent?: string | undefined
  /** The attempt is not the worker's any more: it is told so, and what `execute` returned for it is not waited for. */
  fence?(attempt: AttemptName): void
  /** The result of the attempt is dealt with; it need not be sent again. */
  kept?(attempt: AttemptName): void
  /** The worker is no more, as it left or was silent for its lease: what it had begins again elsewhere, and it has to greet again. */
  dismiss?(): void
}

export interface WorkerGreeting extends WorkerTerms {
  readonly name: string
  /** Another one under the same name has nothing of what this one had. */
  readonly incarnation: string
  /** It takes no further attempts. */
  readonly isDraining: boolean
  /** Attempts that it has from before, running or with a result that was not kept yet. */
  readonly holding: readonly AttemptName[]
  readonly link: WorkerLink
}

/** The workers of a runner. A worker is asked for nothing before it has greeted. */
export interface RolloutWorkers {
  /** A worker is there, or there again: attempts that are still its own go on, and others are fenced. */
  hello(greeting: WorkerGreeting): void
  /** The worker was heard of, with the attempts that it has: its lease begins anew. */
  beat(name: string, holding: readonly AttemptName[]): void
  /** It has a result that nobody waits for: one that came before, or is not its own. */
  result(name: string, attempt: AttemptName): void
  /** Its connection ended; until its grace ends it may greet again. */
  disconnect(name: string): void
  /** It takes no further attempts. */
  drain(name: string): void
  /** It is gone: what it has begins again at once, and does not count as lost. */
  leave(name: string): void
  /** Its process has ended, as whoever started it says: what it has begins again at once, and counts as lost. */
  exit(name: string): void
  /** No worker can be had: rollouts that wait, and those that come, fail with `error`; those that run are cancelled. */
  fail(error: Error): void
  /** Those outside this process; one that was lost stays until it greets again. */
  rows(): readonly WorkerHealth[]
}

/** Workers of other processes, which greet a runner once they have its side. */
export interface WorkerSource {
  attach(workers: RolloutWorkers): void
}
