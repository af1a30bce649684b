import type { Episode, ErrorRecord, RolloutRequest, RunEvent, Turn } from '@aworld-train/protocol'
import type { RunRolloutStatus, StepSample } from './run-records.ts'

export interface RolloutRecord {
  readonly request: RolloutRequest
  readonly status: RunRolloutStatus
  readonly attempt: number
  /** Why a submission was released without a result; `null` for every other. */
  readonly error: ErrorRecord | null
}

/** Rollouts that a client was told will run: a process that starts again runs them without being asked. */
export interface SubmissionStore {
  /** Queues a rollout until it has its result or is released. Once this resolves, a power cut does not lose it. */
  keepSubmission(request: RolloutRequest): Promise<void>
  /** The rollout was given up because of `error`, which is kept until it is queued or begun again. */
  releaseSubmission(rollout: string, error: ErrorRecord): Promise<void>
  /** Those without a result, in the order in which they were queued first. */
  submissions(): readonly RolloutRequest[]
}

/** The worker of an attempt. */
export interface AttemptWorker {
  readonly name: string
  /** The hash of the agent that it ran. */
  readonly agent: string | null
}

/** How an attempt ended that another one follows. */
export interface EndedAttempt {
  /** `null` for this process. */
  readonly worker: AttemptWorker | null
  /** Unix milliseconds. */
  readonly endedAt: number
  readonly error: ErrorRecord
}

/** What the runner keeps of its rollouts. A write of an attempt that is no longer current is refused. */
export interface RolloutWriter {
  /** Says that a rollout waits for a slot. It may be begun without. */
  queue(request: RolloutRequest): Promise<void>
  /** Idempotent by key: a finished rollout gives its episode, an unfinished one a new attempt, and so does one whose episode is a failure of the infrastructure. `before` is kept of the attempt that it follows. */
  begin(request: RolloutRequest, before?: EndedAttempt | null): Promise<{ attempt: number; episode: Episode | null }>
  appendTurn(rollout: string, attempt: number, agent: string, turn: Turn): Promise<void>
  /** Ends the rollout, whose last attempt `worker` ran where it was not this process. A second result for the same key is refused. */
  finish(episode: Episode, worker?: AttemptWorker | null): Promise<void>
  /** Says that an attempt was given up without a result; `attempt` is `null` where the rollout still waited for a slot. An attempt that is no longer current is passed over. */
  cancel(rollout: string, attempt: number | null): Promise<void>
}

/** How far a run has come: its trained steps, and values that must be there after a restart. */
export interface RunProgress {
  readonly path: string
  /** Marks a step as trained with these rollouts, together with its checkpoint and what became of its rows; all or nothing. */
  commitStep(step: StepRecord, samples?: readonly StepSample[]): Promise<void>
  steps(): readonly StepRecord[]
  getState(key: string): unknown
  setState(key: string, value: unknown): Promise<void>
}

/** The requests of a run and their results. */
export interface EpisodeReader {
  /** The request of a rollout and its status; `null` for a rollout that never began. */
  rollout(key: string): RolloutRecord | null
  /** `null` where there is no result, or its tokens are lost. */
  episode(rollout: string): Episode | null
  episodes(filter?: { split?: string | undefined }): Iterable<Episode>
}

/** A run directory with one owner. Every write resolves when it is durable. */
export interface RunStore extends RolloutWriter, RunProgress, EpisodeReader {
  appendEvent(event: RunEvent): void
  close(): Promise<void>
}

export interface StepRecord {
  readonly step: number
  readonly weightVersion: number
  /** Rollout keys whose samples were trained in this step. */
  readonly rollouts: readonly string[]
  /** Training groups that were sampled before the step was trained and that a later step trains: their rollouts stand under the next step from now on. Not read back. */
  readonly carriedGroups?: readonly string[] | undefined
  readonly metrics: Readonly<Record<string, number>>
  /** Path inside the run, `null` for a step without checkpoint. */
  readonly checkpoint: string | null
}
