import { causedByPolicy } from '@aworld-train/core'
import type { StopReason } from '@aworld-train/protocol'

export type ScoreUnfinished = 'zero' | 'null'

/** What is done about an episode's reward. */
export type RewardDecision = 'score' | 'zero' | 'none'

export interface RewardQuestion {
  readonly stopReason: StopReason
  /** Whether the policy has answered at least one call. */
  readonly hasTurns: boolean
}

/**
 * Which episodes are scored. An answer is scored by the reward function. An end that the policy caused is never scored
 * as an answer: it gets 0, so that the policy learns not to, or no reward with `null`. Everything else (failed, out of
 * time, cancelled, no model call, a prompt that fills the context by itself) says nothing of the policy and has none.
 */
export function decideReward({ stopReason, hasTurns }: RewardQuestion, scoreUnfinished: ScoreUnfinished): RewardDecision {
  if (stopReason === 'completed') return 'score'
  return hasTurns && causedByPolicy.has(stopReason) && scoreUnfinished === 'zero' ? 'zero' : 'none'
}
