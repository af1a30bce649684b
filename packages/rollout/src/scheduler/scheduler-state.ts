import type { AttemptName, ErrorRecord, StopReason } from '@aworld-train/core'

/** A rollout until it has its result. */
export interface Job {
  readonly key: string
  /**
   * `queued`: waits for a slot. `beginning`: the store creates its attempt. `running`: a worker has it. `ending`: its agent has ended, and
   * the attempt is closed, decided, scored and kept. `waiting`: waits until `dueAt` for its next attempt. `doubted`: it lost a worker that
   * it had for itself, and at `dueAt` it begins again or is given up.
   */
  status: 'queued' | 'beginning' | 'running' | 'ending' | 'waiting' | 'doubted'
  attempt: number | null
  worker: string | null
  /** Whether it has its worker for itself. */
  isAlone: boolean
  /** Attempts that failed by themselves and were tried again. */
  failures: number
  /** Number of losses together with a worker, and time of the last one. */
  deaths: number
  lostAt: number
  /** Times when it lost a worker that it shared, and that the rollouts there may have ended. */
  deathsAt: readonly number[]
  /** Times when it lost a worker that it had for itself, while no other worker was lost. */
  lossesAt: readonly number[]
  /** Time of the next step: `waiting` jobs are tried again, `doubted` ones are decided, cancelled `running` ones are given up. */
  dueAt: number
  /** Deadline by which its worker must name it again. After that it counts as lost there. */
  namedUntil: number
  cancelled: boolean
}

/** Capacity of a worker, and how long it is waited for, in milliseconds. */
export interface WorkerTerms {
  /** Attempts that it runs at once. */
  readonly slots: number
  /** How long it may be silent before its attempts begin again elsewhere; infinite in this process. */
  readonly leaseMs: number
  /** Last part of its lease, and all that is left of it without a connection. The worker is assigned nothing then. */
  readonly graceMs: number
  /** How long it may take to end a cancelled attempt; infinite in this process. */
  readonly stopMs: number
}

/** One place where agents run. */
export interface WorkerState {
  readonly terms: WorkerTerms
  /** Identifies the process; a new process under the same name holds nothing that this one held. */
  readonly incarnation: string
  /** When its lease ends. */
  deadline: number
  isConnected: boolean
  isDraining: boolean
  readonly jobs: Set<string>
}

export interface SchedulerLimits {
  /** Most new attempts of a rollout after failures that may pass. */
  readonly retries: number
  /** A rollout fails with the loss of this many workers that it had for itself while no other worker was lost. */
  readonly maxLosses: number
  /** Most rollouts that have a slot at once, however many slots there are. */
  readonly concurrency: number
}

export interface SchedulerState {
  readonly limits: SchedulerLimits
  readonly jobs: Map<string, Job>
  /** Keys of rollouts that were begun before, in the order in which they run. They go before `queue`. */
  readonly again: Set<string>
  readonly queue: Set<string>
  readonly waiting: Set<string>
  /** Keys of rollouts that run and are cancelled. */
  readonly stopping: Set<string>
  readonly doubted: Set<string>
  /** Time of the last loss of a worker that no suspect had for itself. */
  othersLostAt: number
  readonly workers: Map<string, WorkerState>
}

export type SchedulerEvent =
  | { readonly type: 'submit'; readonly key: string }
  | { readonly type: 'cancel'; readonly key: string }
  /** The store has created an attempt. */
  | ({ readonly type: 'begun' } & AttemptName)
  /** A worker says that the agent has ended. */
  | ({ readonly type: 'result'; readonly worker: string } & AttemptName)
  /** The attempt is closed, with the reason why it ended. */
  | ({ readonly type: 'ended'; readonly stopReason: StopReason; readonly error: ErrorRecord | undefined } & AttemptName)
  /** The rollout has a durable result, or can have none. */
  | { readonly type: 'closed'; readonly key: string }
  /** A worker connects or reconnects, and names the attempts that it holds. */
  | ({
      readonly type: 'hello'
      readonly worker: string
      readonly incarnation: string
      readonly isDraining: boolean
      readonly holding: readonly AttemptName[]
    } & WorkerTerms)
  /** The worker was heard, and names the attempts that it holds. */
  | { readonly type: 'beat'; readonly worker: string; readonly holding: readonly AttemptName[] }
  /** Its connection ended; it may come back within its grace. */
  | { readonly type: 'disconnect'; readonly worker: string }
  /** It takes no further attempts. */
  | { readonly type: 'drain'; readonly worker: string }
  /** It left on its own word. */
  | { readonly type: 'leave'; readonly worker: string }
  /** Its launcher reports that its process has ended. */
  | { readonly type: 'exit'; readonly worker: string }
  /** The time that `wakeAt` named has come. `isLate`: this process stood still, and has not yet read what workers sent in that time. */
  | { readonly type: 'tick'; readonly isLate: boolean }

export type SchedulerCommand =
  | { readonly type: 'begin'; readonly key: string }
  /** Open the URLs of the attempt and hand it to the worker. */
  | ({ readonly type: 'assign'; readonly worker: string } & AttemptName)
  /** Tell the agent to stop, and wait for its result. */
  | ({ readonly type: 'stop'; readonly worker: string } & AttemptName)
  /** Give up the attempt and close its URLs. `isLast`: the rollout fails with WORKER_LOST; else it begins again. */
  | ({ readonly type: 'revoke'; readonly worker: string; readonly isLast: boolean } & AttemptName)
  /** Tell the worker that the attempt is no longer its own. */
  | ({ readonly type: 'fence'; readonly worker: string } & AttemptName)
  /** Score it and keep its result. */
  | ({ readonly type: 'finish' } & AttemptName)
  /** Keep its turns on record; a new attempt follows. */
  | ({ readonly type: 'supersede'; readonly error: ErrorRecord } & AttemptName)
  /** Tell the worker that it may forget the result. */
  | ({ readonly type: 'kept'; readonly worker: string } & AttemptName)
  /** The rollout was cancelled, nothing of it runs, and it has left the state. */
  | { readonly type: 'drop'; readonly key: string }
  /** End the worker's session: it left, was silent for its lease, or is unknown. */
  | { readonly type: 'dismiss'; readonly worker: string }

export function createSchedulerState(limits: SchedulerLimits): SchedulerState {
  return {
    limits,
    jobs: new Map(),
    again: new Set(),
    queue: new Set(),
    waiting: new Set(),
    stopping: new Set(),
    doubted: new Set(),
    othersLostAt: Number.NEGATIVE_INFINITY,
    workers: new Map(),
  }
}
