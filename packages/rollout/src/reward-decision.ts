import { causedByPolicy } from '@aworld-train/core'
import type { StopReason } from '@aworld-train/protocol'

/** What an episode that ended at a limit gets: 0, what the reward makes of it, or no reward. */
export type ScoreUnfinished = 'zero' | 'score' | 'exclude'

/** What is done about an episode's reward. */
export type RewardDecision = 'score' | 'zero' | 'none'

export interface RewardQuestion {
  readonly stopReason: StopReason
  /** Whether the policy has answered at least one call. */
  readonly hasTurns: boolean
}

/**
 * Which episodes are scored. An answer is scored by the reward function. An end that the policy caused gets what `scoreUnfinished`
 * says: 0 teaches the policy not to. Everything else (failed, out of time, cancelled, no model call, a prompt that fills the
 * context by itself) says nothing of the policy and has no reward.
 */
export function decideReward({ stopReason, hasTurns }: RewardQuestion, scoreUnfinished: ScoreUnfinished): RewardDecision {
  if (stopReason === 'completed') return 'score'
  if (!hasTurns || !causedByPolicy.has(stopReason) || scoreUnfinished === 'exclude') return 'none'
  return scoreUnfinished
}
