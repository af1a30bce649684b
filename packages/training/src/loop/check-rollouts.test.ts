import type { Episode, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { checkRollouts } from './check-rollouts.ts'

const solved = { taskId: 'sum', stopReason: 'completed', reward: 1, error: null, trajectories: [], timing: { startedAt: 0, endedAt: 1 } }
const failure = (code: string, boundary: string) => ({
  ...solved,
  stopReason: 'failed',
  reward: null,
  error: { code, boundary, retryable: boundary === 'environment' || boundary === 'worker', message: `It is ${code}.` },
})
const gone = failure('TOOL_SERVER_DIED', 'environment')
const alone = failure('WORKER_LOST', 'worker')
const broken = failure('AGENT_FAILED', 'agent')
const long = failure('POLICY_CONTEXT_OVERFLOW', 'policy')

const check = (...episodes: unknown[]) => checkRollouts(3, episodes as Episode[])

test.each([
  ['nothing', []],
  ['half of them lost', [solved, gone]],
  ['most of them lost with the workers that they had for themselves', [solved, alone, alone]],
  ['some of them failed', [solved, broken, broken]],
  ['a context that was full after an answer', [solved, { ...long, reward: 0 }]],
])('a step is trained with %s', (_, episodes) => {
  expect(check(...episodes)).toBeNull()
})

test('a prompt that left no room is told with the first task', () => {
  expect(check(solved, { ...long, taskId: 'story' }, long)).toBe(
    '2 of 3 rollouts of step 3 are not trained: the prompt left the model no room to answer. The first, of task "story": It is POLICY_CONTEXT_OVERFLOW.',
  )
})

test.each([
  ['most of them lost, as an outage', [solved, gone, gone], 'TOOL_SERVER_DIED', /^2 of 3 .* The first: It is TOOL_SERVER_DIED\.$/, true],
  ['all of them failed', [broken, long], 'TRAINER_EMPTY_BATCH', /^All 2 rollouts of step 3 failed; nothing was trained:\n {2}- /, false],
  ['no prompt with room', [long, long], 'POLICY_CONTEXT_OVERFLOW', /^All 2 rollouts of step 3 failed/, false],
])('a step is given up with %s', (_, episodes, code, message, isOutage) => {
  try {
    check(...episodes)
    expect.unreachable()
  } catch (error) {
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), details: { step: 3 } })
    expect((error as TrainError).details?.['isOutage'] === true).toBe(isOutage)
  }
})
