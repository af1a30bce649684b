import type { AttemptName, ErrorRecord, RolloutStatus, StopReason, UntrainedReason } from '@aworld-train/protocol'
import type { EngineHealth } from './engine.ts'

/** Where a rollout of a run stands. `cancelled` and `interrupted` have no result, and run again when they are begun: its process gave the first up, and ended during the second. */
export type RunRolloutStatus = Exclude<RolloutStatus, 'failed'>

/** Where the time of a rollout went, in milliseconds; together they are the time from being queued to its end, or to now. */
export interface RolloutWaits {
  /** Waiting for a slot. */
  readonly queue: number
  /** Model calls of the attempt; those that overlap count once. */
  readonly engine: number
  /** Tool calls of the attempt while no model call was going on; 0 until the rollout has ended. */
  readonly tools: number
  /** The rest: the agent itself, and attempts that failed before this one. */
  readonly agent: number
}

/** One rollout as a list shows it. Times are Unix milliseconds with fractions; `null` is "not yet" or "does not apply". */
export interface RolloutRow {
  readonly key: string
  readonly group: string
  readonly taskId: string
  /** Kind of task; results are told apart by it. */
  readonly kind: string
  readonly split: string
  readonly sample: number
  /** Training step that trains it, or the next one that may, or the step at which an evaluation was made; `null` outside both, and where the step was discarded. */
  readonly step: number | null
  readonly status: RunRolloutStatus
  readonly attempt: number
  /** Place in the order of finishing, from 1: a cursor that misses none. */
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
  /** US dollars, of frozen models with a price. */
  readonly cost: number
  readonly answer: string | null
  readonly waitMs: RolloutWaits
}

/** Which rollouts to list; all fields that are set must match. */
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
  /** Only those that finished after this place of the order of finishing, in that order. */
  readonly finishedAfter?: number | undefined
  /** `next` of the page before. */
  readonly after?: string | undefined
  /** 500 by default. */
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
  /** The worker that ran it; `null` where the process of the run did, and of an attempt that goes on: its worker says so itself. */
  readonly worker: string | null
  /** The hash of the agent that this worker ran; `null` where there is no worker. */
  readonly agent: string | null
  readonly startedAt: number
  /** `null` while it goes on, and where its process ended with it. */
  readonly endedAt: number | null
  /** Why another one followed; `null` for the last one, and for one that ended with its process. */
  readonly error: ErrorRecord | null
  /** As they were recorded. */
  readonly turns: number
  readonly sampledTokens: number
}

/** One training row of a step: trained, with the advantage where its loss has one, or not, with the reason. */
export interface StepSample {
  /** Key of the rollout. */
  readonly rollout: string
  readonly agent: string
  readonly step: number
  /** Indices of the turns whose tokens the row trains, or would have. */
  readonly turns: readonly number[]
  /** Tokens with loss mask 1. */
  readonly tokens: number
  /** `null` where the row was not trained, or by a loss without advantages. */
  readonly advantage: number | null
  readonly reason: UntrainedReason | null
  /** Of the tokens with loss mask 1, in order, as the loss had them when the row was trained first; `null` where it was not, or the learner does not keep them. */
  readonly trainerLogprobs: Float32Array | null
}

/** How the process that works on a run is doing: counts of one moment, and what happened since the process began. */
export interface HealthSample {
  /** Unix milliseconds. */
  readonly at: number
  /** Rollouts that wait for a slot, and rollouts that run. */
  readonly queued: number
  readonly running: number
  /** New attempts after failures that may pass, since the process began. */
  readonly retries: number
  /** Model calls in the gateway. */
  readonly calls: number
  /** How late the event loop was since the sample before, in milliseconds: 99 of 100 times no later than `p99`. */
  readonly eventLoopMs: { readonly p99: number; readonly most: number }
  /** Resident memory of the process, in bytes. */
  readonly memoryBytes: number
  /** Engines of the policies, by the name of the model. */
  readonly engines: Readonly<Record<string, EngineHealth & { readonly weightVersion: number }>>
  /** The connection of a trainer in another process; `null` for a run that has none. */
  readonly channel: ChannelHealth | null
}

/** Where a worker stands. `away`: its connection is lost, and what it has is kept for it for a while. `lost`: it did not come back. */
export type WorkerStatus = 'connected' | 'draining' | 'away' | 'lost'

/** A worker in another process, as the process of the run saw it last. */
export interface WorkerHealth {
  readonly name: string
  readonly status: WorkerStatus
  /** Attempts that it runs at once. */
  readonly slots: number
  readonly assignments: readonly AttemptName[]
  /** When it was last heard of, in Unix milliseconds. */
  readonly heardAt: number
  /** Attempts that were lost with it, since the process began. */
  readonly lostAttempts: number
}

/** How the process of a run was doing, and its workers at the end of that. */
export interface RunHealth {
  /** Oldest first. */
  readonly samples: readonly HealthSample[]
  readonly workers: readonly WorkerHealth[]
}

export interface ChannelHealth {
  /** Workers of the trainer that are connected. */
  readonly workers: number
  /** Submitted rollouts without a result, and model calls that the trainer samples. */
  readonly open: number
  readonly calls: number
  /** Since the process began: workers that came again, connections that ended with work on them, workers that were rejected. */
  readonly reconnects: number
  readonly lost: number
  readonly rejected: number
}
