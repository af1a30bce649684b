import type { Episode, ErrorRecord } from '../protocol/episode.ts'
import type { RolloutRequest } from '../protocol/rollout-request.ts'
import type { RunEvent } from '../protocol/run-event.ts'
import type { Turn } from '../protocol/turn.ts'
import type { RunRolloutStatus, StepSample } from './run-records.ts'
import type { WorkspaceFile } from './sandbox.ts'

export interface RolloutRecord {
  readonly request: RolloutRequest
  readonly status: RunRolloutStatus
  readonly attempt: number
  /** Reason why a submission was released without a result; `null` for any other. */
  readonly error: ErrorRecord | null
}

/** Rollouts that a client was promised will run. A restarted process runs them without being asked. */
export interface SubmissionStore {
  /** Queues a rollout until it has its result or is released. Once this resolves, a power cut does not lose it. */
  keepSubmission(request: RolloutRequest): Promise<void>
  /** Gives a rollout up because of `error`, which is kept until the rollout is queued or begun again. */
  releaseSubmission(rollout: string, error: ErrorRecord): Promise<void>
  /** Submissions without a result, in the order of their first queueing. */
  submissions(): readonly RolloutRequest[]
}

/** The worker of an attempt. */
export interface AttemptWorker {
  readonly name: string
  /** The hash of the agent that it ran. */
  readonly agent: string | null
}

/** The end of an attempt that another one follows. */
export interface EndedAttempt {
  /** `null` for this process. */
  readonly worker: AttemptWorker | null
  /** Unix milliseconds. */
  readonly endedAt: number
  readonly error: ErrorRecord
}

/** What a reward that sees a group has made of a finished rollout. */
export type GroupScore = Pick<Episode, 'rollout' | 'reward' | 'stopReason' | 'error' | 'rewardTrajectories'>

/** The runner's record of its rollouts. A write of an attempt that is no longer current is refused. */
export interface RolloutWriter {
  /** Records that a rollout waits for a slot. It may be begun without this. */
  queue(request: RolloutRequest): Promise<void>
  /**
   * Idempotent by key. A finished rollout gives its episode. An unfinished one gives a new attempt, and so does one whose episode is a
   * failure of the infrastructure. `before` is kept of the attempt that it follows.
   */
  begin(request: RolloutRequest, before?: EndedAttempt | null): Promise<{ attempt: number; episode: Episode | null }>
  appendTurn(rollout: string, attempt: number, trajectory: string, turn: Turn): Promise<void>
  /**
   * Ends the rollout. `worker` ran its last attempt, unless this process did. `files` are those that the episode names. A second result for
   * the same key is refused.
   */
  finish(episode: Episode, worker?: AttemptWorker | null, files?: readonly WorkspaceFile[]): Promise<void>
  /** Adds the scores of a group to the results of its rollouts, all or none. */
  keepScores(scores: readonly GroupScore[]): Promise<void>
  /**
   * Records that an attempt was given up without a result; `attempt` is `null` if the rollout still waited for a slot. An attempt that is
   * no longer current is passed over.
   */
  cancel(rollout: string, attempt: number | null): Promise<void>
}

/** Progress of a run: its trained steps, and values that must survive a restart. */
export interface RunProgress {
  readonly path: string
  /** Marks a step as trained with these rollouts, together with its checkpoint and the records of its rows; all or nothing. */
  commitStep(step: StepRecord, samples?: readonly StepSample[]): Promise<void>
  steps(): readonly StepRecord[]
  getState(key: string): unknown
  setState(key: string, value: unknown): Promise<void>
}

/** The requests of a run and their results. */
export interface EpisodeReader {
  /** The request of a rollout and its status; `null` for a rollout that never began. */
  rollout(key: string): RolloutRecord | null
  /** `null` if there is no result, or if its tokens are lost. */
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
  /** Keys of the rollouts whose samples were trained in this step. */
  readonly rollouts: readonly string[]
  /**
   * Training groups that were sampled before the step was trained and that a later step trains. Their rollouts belong to the next step from
   * then on. Not read back.
   */
  readonly carriedGroups?: readonly string[] | undefined
  readonly metrics: Readonly<Record<string, number>>
  /** Path inside the run; `null` for a step without checkpoint. */
  readonly checkpoint: string | null
}
