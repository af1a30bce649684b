import type { Episode } from '../protocol/episode.ts'
import type { AnswerKey, TrainingTask } from '../protocol/task.ts'

export interface RewardInput {
  readonly task: TrainingTask
  readonly episode: Episode
  readonly answer: AnswerKey
}

export interface RewardOutput {
  /** `null` if it abstained. */
  readonly reward: number | null
  readonly scores: Readonly<Record<string, number>>
  /** Rewards of single agents, by name. An agent without one has that of the rollout. */
  readonly agents?: Readonly<Record<string, number>> | undefined
}

/** Scores a finished episode. Rejects with REWARD_FAILED, REWARD_INVALID or REWARD_TIMEOUT. */
export interface Reward {
  readonly name: string
  score(input: RewardInput, signal: AbortSignal): Promise<RewardOutput>
  close(): Promise<void>
}
