import {
  type CommandResult,
  type RewardInput,
  type ScoringContext,
  scoringContext,
  TrainError,
  type VerifyRequest,
  type WorkspaceFile,
} from '@aworld-train/core'

/**
 * Result of a reward: a finite number, or one with named scores and with rewards of single agents by their names, which
 * `training.ownReward` weighs. `null` abstains, so that the episode is not trained and is in no mean.
 */
export type RewardValue =
  | number
  | null
  | {
      readonly reward: number | null
      readonly scores?: Readonly<Record<string, number>> | undefined
      readonly agents?: Readonly<Record<string, number>> | undefined
    }

/** AWorld's positional form. `solutionStr` is the final assistant text, '' when there is none. */
export type RewardFunction = (
  dataSource: string,
  solutionStr: string,
  // biome-ignore lint/suspicious/noExplicitAny: a reward names the type of its own ground truth.
  groundTruth: any,
  extraInfo: Readonly<Record<string, unknown>>,
  context: ScoringContext,
) => RewardValue | Promise<RewardValue>

/** Everything that a reward sees of a rollout. */
export interface RewardContext extends RewardInput {
  /** The files that `environment.collect` names, as they were when the workspace closed. Empty if there are none, or if they were refused. */
  readonly files: readonly WorkspaceFile[]
  /**
   * Runs a command over files of the rollout and of the reward, in a fresh workspace without network. It can read them, and write to `/tmp`
   * alone. The exit code is that of the command.
   */
  readonly verify: (request: VerifyRequest) => Promise<CommandResult>
}

export type RichRewardFunction = (input: RewardContext, context: ScoringContext) => RewardValue | Promise<RewardValue>

const mark = 'aworld-train.reward'

/** A reward that sees the whole episode. */
export interface DefinedReward {
  readonly kind: typeof mark
  readonly name: string
  /** Without `verify`, a reward that calls it fails, and without `context` one that asks a model. */
  readonly score: (input: RewardInput & Partial<RewardContext>, context?: ScoringContext) => RewardValue | Promise<RewardValue>
}

/** Makes a reward that sees the whole episode: `defineReward(({ task, episode, answer }, { model, signal }) => …)`. */
export function defineReward(score: RichRewardFunction, name = score.name || 'reward'): DefinedReward {
  return {
    kind: mark,
    name,
    score: ({ files = [], verify = refuseVerify, ...input }, context = scoringContext(new AbortController().signal)) =>
      score({ ...input, files, verify }, context),
  }
}

const refuseVerify = (): never => {
  throw new TrainError('REWARD_FAILED', 'There is no sandbox here in which a reward could verify files; pass verify.')
}

/** Whether a value was made by `defineReward`, in this copy of the package or another. */
export function isDefinedReward(value: unknown): value is DefinedReward {
  return typeof value === 'object' && value !== null && (value as Partial<DefinedReward>).kind === mark
}
