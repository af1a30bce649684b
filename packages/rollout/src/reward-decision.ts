import { causedByPolicy, type StopReason } from '@aworld-train/core'

/** Reward of an episode that ended at a limit: 0, the score of the reward function, or none. */
export type ScoreUnfinished = 'zero' | 'score' | 'exclude'

/** How an episode gets its reward. */
export type RewardDecision = 'score' | 'zero' | 'none'

export interface RewardQuestion {
  readonly stopReason: StopReason
  /** Whether the policy has answered at least one call. */
  readonly hasTurns: boolean
}

/**
 * Decides how an episode gets its reward. The reward function scores an answer. `scoreUnfinished` applies to an end that the policy caused:
 * 0 teaches the policy to avoid it. Any other end (failed, out of time, cancelled, no model call, a prompt that fills the context by
 * itself) says nothing about the policy and gets no reward.
 */
export function decideReward({ stopReason, hasTurns }: RewardQuestion, scoreUnfinished: ScoreUnfinished): RewardDecision {
  if (stopReason === 'completed') return 'score'
  if (!hasTurns || !causedByPolicy.has(stopReason) || scoreUnfinished === 'exclude') return 'none'
  return scoreUnfinished
}
