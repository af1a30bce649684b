import type { Episode } from '../protocol/episode.ts'
import type { AnswerKey, TrainingTask } from '../protocol/task.ts'
import type { PolicyEndpoint } from './agent-program.ts'
import type { CommandResult, WorkspaceFile } from './sandbox.ts'

export interface RewardInput {
  readonly task: TrainingTask
  readonly episode: Episode
  readonly answer: AnswerKey
  /** The files that `environment.collect` names, as they were when the workspace closed. */
  readonly files?: readonly WorkspaceFile[] | undefined
}

/** A command that checks files of a rollout. */
export interface VerifyRequest {
  /** Files of the rollout. Default: all that were collected. */
  readonly files?: readonly WorkspaceFile[] | undefined
  /** Files of the reward, such as hidden tests, by their paths beside those. They replace files of the rollout that are in their way. */
  readonly own?: Readonly<Record<string, string | Uint8Array>> | undefined
  /** A program and its arguments, which run in the folder of the files, without a shell. */
  readonly command: readonly [string, ...string[]]
  readonly stdin?: string | undefined
  /** Default 60,000. */
  readonly timeoutMs?: number | undefined
}

/** Where rewards check files: fresh workspaces without network, which can only read what is checked and write to `/tmp`. */
export interface Verifier {
  /** Rejects with REWARD_FAILED if the command cannot run here. */
  verify(request: VerifyRequest, signal: AbortSignal): Promise<CommandResult>
  close(): Promise<void>
}

export interface RewardOutput {
  /** `null` if it abstained. */
  readonly reward: number | null
  readonly scores: Readonly<Record<string, number>>
  /** Rewards of single agents, by name. An agent without one has that of the rollout. */
  readonly agents?: Readonly<Record<string, number>> | undefined
}

/** What a reward has beside the episode while it scores. */
export interface ScoringContext {
  /** Aborts when the score is no longer wanted. */
  readonly signal: AbortSignal
  /**
   * Address, key and name of one of the training's frozen models, for any client. The address is that of the gateway and ends with the
   * scoring. Throws CONFIG_INVALID for a model that the training does not have.
   */
  readonly model: (name: string) => PolicyEndpoint
  /** The frozen models by name. */
  readonly endpoints: Readonly<Record<string, PolicyEndpoint>>
}

/** The rollouts of one task that a reward compares: at least two, without those that failed. */
export interface GroupInput {
  readonly task: TrainingTask
  readonly answer: AnswerKey
  readonly episodes: readonly Episode[]
  /** The name of the group and the seed of the run, for random draws. */
  readonly group: string
  readonly seed: number
}

/**
 * Scores finished episodes: `episode` each by itself, `group` those of a group together. The values of `rank` are an order within the group
 * and no score, so that a mean over groups says nothing.
 */
export type RewardKind = 'episode' | 'group' | 'rank'

/** Scores a finished episode, or those of a group. Rejects with REWARD_FAILED, REWARD_INVALID, REWARD_TIMEOUT or JUDGE_INVALID. */
export interface Reward {
  readonly name: string
  /** Default `episode`. */
  readonly kind?: RewardKind | undefined
  score(input: RewardInput, context: ScoringContext): Promise<RewardOutput>
  /** A value for each episode, in their order; `null` abstains. In place of `score` where the kind is another than `episode`. */
  scoreGroup?(input: GroupInput, context: ScoringContext): Promise<readonly (number | null)[]>
  close(): Promise<void>
}
