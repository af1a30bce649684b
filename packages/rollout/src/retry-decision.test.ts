import { type ErrorCode, type StopReason, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { decideRetry } from './retry-decision.ts'

const cases: readonly [stopReason: StopReason, code: ErrorCode | null, retried: number, delayMs: number | null][] = [
  ['failed', 'POLICY_UNAVAILABLE', 0, 100],
  ['failed', 'POLICY_UNAVAILABLE', 1, 200],
  ['failed', 'POLICY_UNAVAILABLE', 2, null],
  ['failed', 'TOOL_SERVER_DIED', 0, 100],
  ['failed', 'TOOL_TIMEOUT', 0, 100],
  ['failed', 'ENVIRONMENT_START_FAILED', 0, 100],
  ['failed', 'POLICY_WORKER_DIED', 0, null],
  ['failed', 'AGENT_FAILED', 0, null],
  ['failed', 'REWARD_FAILED', 0, null],
  ['failed', 'STORE_FULL', 0, null],
  ['failed', null, 0, null],
  ['completed', null, 0, null],
  ['time-limit', 'POLICY_UNAVAILABLE', 0, null],
]

test('what was waited for where it happened is not tried again', () => {
  const error = new TrainError('POLICY_UNAVAILABLE', 'It did not answer.', { details: { waitedMs: 60_000 } }).toRecord()
  expect(decideRetry({ stopReason: 'failed', error, retried: 0, retries: 2 })).toBe(null)
})

test.each(cases)('%s by %s after %i retries waits %s', (stopReason, code, retried, delayMs) => {
  const error = code === null ? undefined : new TrainError(code, 'It happened.').toRecord()
  expect(decideRetry({ stopReason, error, retried, retries: 2 })).toBe(delayMs)
})
