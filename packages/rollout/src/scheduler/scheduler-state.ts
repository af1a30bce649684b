import type { AttemptName, ErrorRecord, StopReason } from '@aworld-train/protocol'

/** One rollout until it has its result. */
export interface Job {
  readonly key: string
  /**
   * `queued`: waits for a slot. `beginning`: the store makes an attempt. `running`: a worker has it. `ending`: its agent has ended, and the
   * attempt is closed, decided, scored and kept. `waiting`: for its next attempt, until `dueAt`. `doubted`: it has lost a worker
   * that it had for itself, and at `dueAt` begins again or is given up.
   */
  status: 'queued' | 'beginning' | 'running' | 'ending' | 'waiting' | 'doubted'
  attempt: number | null
  worker: string | null
  /** Whether it has its worker for itself. */
  isAlone: boolean
  /** Attempts that failed by themselves and were tried again. */
  failures: number
  /** Attempts that were lost with their workers, and when the last one was. */
  deaths: number
  lostAt: number
  /** When workers were lost that it had not for itself, and that what they had may have ended. */
  deathsAt: readonly number[]
  /** When workers were lost that it had for itself, while no other worker was lost. */
  lossesAt: readonly number[]
  /** When it is tried again where it is `waiting`; when that is decided where it is `doubted`; when it is given up where it is `running` and cancelled. */
  dueAt: number
  /** By when its worker must say again that it has it; where it does not, it has been lost there. */
  namedUntil: number
  cancelled: boolean
}

/** What a worker takes, and how long it is waited for, in milliseconds. */
export interface WorkerTerms {
  /** Attempts that it runs at once. */
  readonly slots: number
  /** How long it may be silent before what it has begins again elsewhere; infinite in this process. */
  readonly leaseMs: number
  /** The last part of its lease, which is all that is left of it without a connection; it is assigned nothing then. */
  readonly graceMs: number
  /** How long it may take to end what is cancelled; infinite in this process. */
  readonly stopMs: number
}

/** One place where agents run. */
export interface WorkerState {
  readonly terms: WorkerTerms
  /** Another one under the same name has nothing of what this one had. */
  readonly incarnation: string
  /** When its lease ends. */
  deadline: number
  isConnected: boolean
  isDraining: boolean
  readonly jobs: Set<string>
}

export interface SchedulerLimits {
  /** New attempts of a rollout after failures that may pass. */
  readonly retries: number
  /** Workers that a rollout may lose while it has them for itself and no other is lost; with the last of them it fails. */
  readonly maxLosses: number
  /** Rollouts that have a slot at once, however many slots there are. */
  readonly concurrency: number
}

export interface SchedulerState {
  readonly limits: SchedulerLimits
  readonly jobs: Map<string, Job>
  /** Keys in the order in which they run: what was begun before goes first. */
  readonly again: Set<string>
  readonly queue: Set<string>
  readonly waiting: Set<string>
  /** What is cancelled and runs. */
  readonly stopping: Set<string>
  readonly doubted: Set<string>
  /** When the last worker was lost that no suspect had for itself. */
  othersLostAt: number
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
  | ({
      readonly type: 'hello'
      readonly worker: string
      readonly incarnation: string
      readonly isDraining: boolean
      readonly holding: readonly AttemptName[]
    } & WorkerTerms)
  /** The worker was heard, with the attempts that it has. */
  | { readonly type: 'beat'; readonly worker: string; readonly holding: readonly AttemptName[] }
  /** Its connection ended; it may come back within its grace. */
  | { readonly type: 'disconnect'; readonly worker: string }
  /** It takes nothing more. */
  | { readonly type: 'drain'; readonly worker: string }
  /** It is gone, and says so. */
  | { readonly type: 'leave'; readonly worker: string }
  /** Its process has ended, as whoever started it says. */
  | { readonly type: 'exit'; readonly worker: string }
  /** The time that `wakeAt` named has come. `isLate`: long ago; this process stood still, and has not read yet what workers said meanwhile. */
  | { readonly type: 'tick'; readonly isLate: boolean }

/** What is to be done about it. */
export type SchedulerCommand =
  | { readonly type: 'begin'; readonly key: string }
  /** Open the URLs of the attempt and hand it to the worker. */
  | ({ readonly type: 'assign'; readonly worker: string } & AttemptName)
  /** Have the agent stop; its result is waited for. */
  | ({ readonly type: 'stop'; readonly worker: string } & AttemptName)
  /** Close the URLs: the attempt is given up. `isLast`: the rollout fails with WORKER_LOST, else it begins again. */
  | ({ readonly type: 'revoke'; readonly worker: string; readonly isLast: boolean } & AttemptName)
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
  /** The worker is no more: it left, it was silent for its lease, or nobody knows it. */
  | { readonly type: 'dismiss'; readonly worker: string }

export function createSchedulerState(limits: SchedulerLimits): SchedulerState {
  return {
    ...{ limits, jobs: new Map(), again: new Set(), queue: new Set(), waiting: new Set(), stopping: new Set(), doubted: new Set() },
    ...{ othersLostAt: Number.NEGATIVE_INFINITY, workers: new Map() },
  }
}
