import type { AttemptName, ErrorRecord, StopReason } from '@aworld-train/protocol'

/** One rollout until it has its result. */
export interface Job {
  readonly key: string
  /**
   * `queued`: waits for a slot. `beginning`: the store makes an attempt. `running`: a worker has it. `ending`: its agent has ended, and the
   * attempt is closed, decided, scored and kept. `waiting`: for its next attempt, until `retryAt`.
   */
  status: 'queued' | 'beginning' | 'running' | 'ending' | 'waiting'
  attempt: number | null
  worker: string | null
  /** Attempts that failed by themselves and were tried again, and attempts whose worker was lost. */
  failures: number
  losses: number
  retryAt: number
  cancelled: boolean
}

/** One place where agents run. */
export interface WorkerState {
  readonly slots: number
  /** How long it may be silent, in milliseconds; infinite in this process. */
  readonly leaseMs: number
  deadline: number
  isConnected: boolean
  isDraining: boolean
  readonly jobs: Set<string>
}

export interface SchedulerLimits {
  /** New attempts of a rollout after failures that may pass. */
  readonly retries: number
  /** Workers that a rollout may lose; with the last of them it fails. */
  readonly maxLosses: number
}

export interface SchedulerState {
  readonly limits: SchedulerLimits
  readonly jobs: Map<string, Job>
  /** Keys in the order in which they run: what was begun before goes first. */
  readonly again: Set<string>
  readonly queue: Set<string>
  readonly waiting: Set<string>
  readonly workers: Map<string, WorkerState>
}

/** What happened. */
export type SchedulerEvent =
  | { readonly type: 'submit'; readonly key: string }
  | { readonly type: 'cancel'; readonly key: string }
  /** The store has made an attempt. */
  | ({ readonly type: 'begun' } & AttemptName)
  /** A worker says that the agent has ended. */
  | ({ readonly type: 'result'; readonly worker: string } & AttemptName)
  /** The attempt is closed, and this is why it ended. */
  | ({ readonly type: 'ended'; readonly stopReason: StopReason; readonly error: ErrorRecord | undefined } & AttemptName)
  /** The rollout has a result that is durable, or can have none. */
  | { readonly type: 'closed'; readonly key: string }
  /** A worker is there, or there again, with the attempts that it has. */
  | {
      readonly type: 'hello'
      readonly worker: string
      readonly slots: number
      readonly leaseMs: number
      readonly holding: readonly AttemptName[]
    }
  | { readonly type: 'beat'; readonly worker: string }
  /** Its connection ended; it may come back within its lease. */
  | { readonly type: 'disconnect'; readonly worker: string }
  /** It takes nothing more. */
  | { readonly type: 'drain'; readonly worker: string }
  /** It is gone, and says so. */
  | { readonly type: 'leave'; readonly worker: string }
  | { readonly type: 'tick' }

/** What is to be done about it. */
export type SchedulerCommand =
  | { readonly type: 'begin'; readonly key: string }
  /** Open the URLs of the attempt and hand it to the worker. */
  | ({ readonly type: 'assign'; readonly worker: string } & AttemptName)
  /** Have the agent stop; its result is waited for. */
  | ({ readonly type: 'stop'; readonly worker: string } & AttemptName)
  /** Close the URLs: the attempt is given up. `isLast`: the rollout fails with WORKER_LOST, else it begins again. */
  | ({ readonly type: 'revoke'; readonly isLast: boolean } & AttemptName)
  /** Tell the worker that the attempt is not its own any more. */
  | ({ readonly type: 'fence'; readonly worker: string } & AttemptName)
  /** Score it and keep its result. */
  | ({ readonly type: 'finish' } & AttemptName)
  /** Its turns stay on record; a new attempt follows. */
  | ({ readonly type: 'supersede'; readonly error: ErrorRecord } & AttemptName)
  /** Tell the worker that it may forget the result. */
  | ({ readonly type: 'kept'; readonly worker: string } & AttemptName)
  /** The rollout was cancelled and nothing of it runs; it has left. */
  | { readonly type: 'drop'; readonly key: string }
  /** A worker was silent for its lease. */
  | { readonly type: 'dismiss'; readonly worker: string }

export function createSchedulerState(limits: SchedulerLimits): SchedulerState {
  return { limits, jobs: new Map(), again: new Set(), queue: new Set(), waiting: new Set(), workers: new Map() }
}
