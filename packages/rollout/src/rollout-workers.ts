import type { AttemptExecutor, AttemptName, WorkerHealth } from '@aworld-train/core'
import type { WorkerTerms } from './scheduler/scheduler-state.ts'

/** The coordinator's connection to a place where agents run. */
export interface WorkerLink extends AttemptExecutor {
  /** Hash of the worker's agent; absent for this process. */
  readonly agent?: string | undefined
  /** Takes the attempt from the worker: the worker is told so, and the result of `execute` is no longer waited for. */
  fence?(attempt: AttemptName): void
  /** Tells the worker that the result of the attempt is dealt with and need not be sent again. */
  kept?(attempt: AttemptName): void
  /** Ends the worker's session: it left, or was silent for its lease. Its attempts begin again elsewhere, and it must greet again. */
  dismiss?(): void
}

export interface WorkerGreeting extends WorkerTerms {
  readonly name: string
  /** Identifies the process; a new process under the same name holds nothing that this one held. */
  readonly incarnation: string
  /** It takes no further attempts. */
  readonly isDraining: boolean
  /** Attempts that it already holds: running ones, and ones whose result has not been kept yet. */
  readonly holding: readonly AttemptName[]
  readonly link: WorkerLink
}

/** The workers of a runner. A worker gets no work before it has greeted. */
export interface RolloutWorkers {
  /** A worker connects or reconnects. Attempts that are still its own go on; others are fenced. */
  hello(greeting: WorkerGreeting): void
  /** The worker was heard and names the attempts that it holds. Its lease begins anew. */
  beat(name: string, holding: readonly AttemptName[]): void
  /** It sent a result that nobody waits for: a repeated one, or one of an attempt that is not its own. */
  result(name: string, attempt: AttemptName): void
  /** Its connection ended; it may greet again until its grace ends. */
  disconnect(name: string): void
  /** It takes no further attempts. */
  drain(name: string): void
  /** It left. Its attempts begin again at once and do not count as lost. */
  leave(name: string): void
  /** Its launcher reports that its process has ended. Its attempts begin again at once and count as lost. */
  exit(name: string): void
  /** No worker can be had. Waiting and later rollouts fail with `error`; running ones are cancelled. */
  fail(error: Error): void
  /** Workers outside this process. A lost one stays listed until it greets again. */
  rows(): readonly WorkerHealth[]
}

/** Workers of other processes. They greet the runner after `attach`. */
export interface WorkerSource {
  attach(workers: RolloutWorkers): void
}
