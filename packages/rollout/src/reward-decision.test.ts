import { StopReason } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { decideReward, type RewardDecision } from './reward-decision.ts'

const decisions: Record<StopReason, readonly [zero: RewardDecision, score: RewardDecision, exclude: RewardDecision]> = {
  completed: ['score', 'score', 'score'],
  'turn-limit': ['zero', 'score', 'none'],
  'token-limit': ['zero', 'score', 'none'],
  'tool-call-limit': ['zero', 'score', 'none'],
  'cost-limit': ['zero', 'score', 'none'],
  'context-overflow': ['zero', 'score', 'none'],
  truncated: ['zero', 'score', 'none'],
  'time-limit': ['none', 'none', 'none'],
  cancelled: ['none', 'none', 'none'],
  'no-model-call': ['none', 'none', 'none'],
  failed: ['none', 'none', 'none'],
}

test.each(StopReason.options)('%s', (stopReason) => {
  const question = { stopReason, hasTurns: true }
  const ways = ['zero', 'score', 'exclude'] as const
  expect(ways.map((way) => decideReward(question, way))).toEqual(decisions[stopReason])
})

test.each(StopReason.options.filter((reason) => reason !== 'completed'))(
  '%s, before the policy said anything, has no reward',
  (stopReason) => {
    for (const way of ['zero', 'score'] as const) expect(decideReward({ stopReason, hasTurns: false }, way)).toBe('none')
  },
)
