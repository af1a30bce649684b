import { StopReason } from '@aworld-train/protocol'
import { expect, test } from 'vitest'
import { decideReward, type RewardDecision } from './reward-decision.ts'

const decisions: Record<StopReason, readonly [zero: RewardDecision, none: RewardDecision]> = {
  completed: ['score', 'score'],
  'turn-limit': ['zero', 'none'],
  'token-limit': ['zero', 'none'],
  'tool-call-limit': ['zero', 'none'],
  'cost-limit': ['zero', 'none'],
  'context-overflow': ['zero', 'none'],
  truncated: ['zero', 'none'],
  'time-limit': ['none', 'none'],
  cancelled: ['none', 'none'],
  'no-model-call': ['none', 'none'],
  failed: ['none', 'none'],
}

test.each(StopReason.options)('%s', (stopReason) => {
  const question = { stopReason, hasTurns: true }
  expect([decideReward(question, 'zero'), decideReward(question, 'null')]).toEqual(decisions[stopReason])
})

test.each(StopReason.options.filter((reason) => reason !== 'completed'))(
  '%s, before the policy said anything, has no reward',
  (stopReason) => {
    expect(decideReward({ stopReason, hasTurns: false }, 'zero')).toBe('none')
  },
)
