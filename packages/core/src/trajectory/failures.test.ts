import { expect, it } from 'vitest'
import { countFailures, describeFailure, type EndedRollout, isFailed, isUnscored } from './failures.ts'

const threw = (rollout: string, code: string, source?: string): EndedRollout => ({
  rollout,
  reward: null,
  stopReason: 'failed',
  turns: 2,
  error: { code, boundary: 'reward', retryable: false, message: `${rollout} has no unit.`, ...(source !== undefined && { source }) },
})

it('counts failures by code and line with the first rollout of each, the most frequent first', () => {
  const counts = countFailures([
    { rollout: 'a', reward: 1, stopReason: 'completed', turns: 1 },
    threw('b', 'AGENT_FAILED'),
    threw('c', 'REWARD_FAILED', '/p/reward.ts:7'),
    threw('d', 'REWARD_FAILED', '/p/reward.ts:7'),
    threw('e', 'REWARD_FAILED', '/p/reward.ts:9'),
    { rollout: 'f', reward: null, stopReason: 'time-limit', turns: 1 },
  ])
  expect(counts.map(({ message: _, ...count }) => count)).toEqual([
    { code: 'REWARD_FAILED', count: 2, rollout: 'c', source: '/p/reward.ts:7' },
    { code: 'AGENT_FAILED', count: 1, rollout: 'b', source: null },
    { code: 'REWARD_FAILED', count: 1, rollout: 'e', source: '/p/reward.ts:9' },
    { code: 'time-limit', count: 1, rollout: 'f', source: null },
  ])
  expect(describeFailure(counts[0]!)).toBe('2 of REWARD_FAILED at /p/reward.ts:7, first c: c has no unit.')
})

it.each([
  ['completed', 1, false],
  ['turn-limit', 3, false],
  ['context-overflow', 3, false],
  // The prompt alone filled the context.
  ['context-overflow', 0, true],
  ['no-model-call', 0, true],
  ['failed', 3, true],
] as const)('of rollouts without a reward, one that ended as %s after %i turns has failed: %s', (stopReason, turns, failed) => {
  const ended = { rollout: 'a', reward: null, stopReason, turns }
  expect([isFailed(ended), isUnscored(ended), countFailures([ended]).length]).toEqual([failed, !failed, Number(failed)])
})
