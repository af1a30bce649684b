import type { ErrorRecord, StopReason } from '../protocol/episode.ts'
import type { RolloutStatus } from '../protocol/rollout-state.ts'
import type { UntrainedReason } from '../protocol/token-ledger.ts'
import type { AttemptName } from '../protocol/worker.ts'
import type { EngineHealth } from './engine.ts'

/**
 * Status of a rollout in a run. `cancelled`: its process gave it up. `interrupted`: its process ended during it. Both have no result, and
 * run again when they are begun.
 */
export type RunRolloutStatus = Exclude<RolloutStatus, 'failed'>

/** Milliseconds of a rollout by activity. Together they are the time from its queueing to its end, or to now. */
export interface RolloutWaits {
  /** Waiting for a slot. */
  readonly queue: number
  /** Model calls of the attempt; those that overlap count once. */
  readonly engine: number
  /** Tool calls of the attempt while no model call was under way; 0 until the rollout has ended. */
  readonly tools: number
  /** All other time: the agent itself, and failed attempts before this one. */
  readonly agent: number
}

/** One rollout as a row in a list. Times are Unix milliseconds with fractions. `null` is "not yet" or "does not apply". */
export interface RolloutRow {
  readonly key: string
  readonly group: string
  readonly taskId: string
  /** Kind of task, by which results are split. */
  readonly kind: string
  readonly split: string
  readonly sample: number
  /** Step that trains it or may train it next, or step of its evaluation. `null` outside both, and if the step was discarded. */
  readonly step: number | null
  readonly status: RunRolloutStatus
  readonly attempt: number
  /** Place in the order of finishing, counted from 1. As a cursor it misses none. */
  readonly finished: number | null
  readonly queuedAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly reward: number | null
  readonly stopReason: StopReason | null
  readonly error: ErrorRecord | null
  readonly turns: number
  readonly toolCalls: number
  readonly sampledTokens: number
  /** Cost in US dollars of frozen models with a price. */
  readonly cost: number
  readonly answer: string | null
  readonly waitMs: RolloutWaits
}

/** Selects rollouts. All fields that are set must match. */
export interface RolloutQuery {
  readonly key?: string | undefined
  readonly split?: string | undefined
  readonly step?: number | undefined
  readonly group?: string | undefined
  readonly taskId?: string | undefined
  readonly kind?: string | undefined
  readonly status?: RolloutRow['status'] | undefined
  readonly stopReason?: StopReason | undefined
  readonly minReward?: number | undefined
  readonly maxReward?: number | undefined
  /** Only rollouts that finished after this place in the order of finishing, in that order. */
  readonly finishedAfter?: number | undefined
  /** `next` of the page before. */
  readonly after?: string | undefined
  /** Default 500. */
  readonly limit?: number | undefined
}

export interface RolloutPage {
  readonly rows: readonly RolloutRow[]
  /** `after` of the next page; `null` on the last one. */
  readonly next: string | null
}

/** One attempt of a rollout. Times are Unix milliseconds. */
export interface AttemptRow {
  readonly attempt: number
  /**
   * The worker that ran it. `null` if the process of the run did, or if the attempt is still running, because its worker reports it itself.
   */
  readonly worker: string | null
  /** The hash of the agent that this worker ran; `null` without a worker. */
  readonly agent: string | null
  readonly startedAt: number
  /** `null` while it runs, and if its process ended with it. */
  readonly endedAt: number | null
  /** The reason for the next attempt; `null` for the last one, and for one that ended with its process. */
  readonly error: ErrorRecord | null
  /** Counts as they were recorded. */
  readonly turns: number
  readonly sampledTokens: number
}

/** One training row of a step: trained, with the advantage if its loss has one, or untrained, with the reason. */
export interface StepSample {
  /** Key of the rollout. */
  readonly rollout: string
  readonly agent: string
  /** Id of the invocation. */
  readonly trajectory: string
  readonly step: number
  /** Indices of the turns whose tokens the row trains, or would train. */
  readonly turns: readonly number[]
  /** Tokens with loss mask 1. */
  readonly tokens: number
  /** `null` if the row was not trained, or by a loss without advantages. */
  readonly advantage: number | null
  readonly reason: UntrainedReason | null
  /**
   * Logprobs of the tokens with loss mask 1, in order, by the loss when it first trained the row. `null` if it was not trained, or if the
   * learner does not keep them.
   */
  readonly trainerLogprobs: Float32Array | null
}

/** Health of the process that works on a run: counts of one moment, and events since the process began. */
export interface HealthSample {
  /** Unix milliseconds. */
  readonly at: number
  /** Rollouts that wait for a slot, and rollouts that run. */
  readonly queued: number
  readonly running: number
  /** New attempts after temporary failures, since the process began. */
  readonly retries: number
  /** Model calls in the gateway. */
  readonly calls: number
  /** Lateness of the event loop since the sample before, in milliseconds: 99 of 100 times at most `p99`. */
  readonly eventLoopMs: { readonly p99: number; readonly most: number }
  /** Resident memory of the process, in bytes. */
  readonly memoryBytes: number
  /** Engines of the policies, by model name. */
  readonly engines: Readonly<Record<string, EngineHealth & { readonly weightVersion: number }>>
  /** The connection of a trainer in another process; `null` for a run without one. */
  readonly channel: ChannelHealth | null
}

/** Status of a worker. `away`: its connection is lost, and its work is kept for it for a while. `lost`: it did not come back. */
export type WorkerStatus = 'connected' | 'draining' | 'away' | 'lost'

/** A worker in another process, as the process of the run last saw it. */
export interface WorkerHealth {
  readonly name: string
  readonly status: WorkerStatus
  /** Attempts that it runs at once. */
  readonly slots: number
  readonly assignments: readonly AttemptName[]
  /** Time when it was last heard of, in Unix milliseconds. */
  readonly heardAt: number
  /** Attempts that were lost with it, since the process began. */
  readonly lostAttempts: number
}

/** Recent health of a run's process, and its workers at the end of that time. */
export interface RunHealth {
  /** The oldest is first. */
  readonly samples: readonly HealthSample[]
  readonly workers: readonly WorkerHealth[]
}

export interface ChannelHealth {
  /** Workers of the trainer that are connected. */
  readonly workers: number
  /** Submitted rollouts without a result, and model calls that the trainer samples. */
  readonly open: number
  readonly calls: number
  /** Events since the process began: workers that reconnected, connections that ended with work on them, workers that were rejected. */
  readonly reconnects: number
  readonly lost: number
  readonly rejected: number
}
