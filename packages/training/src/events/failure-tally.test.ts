import { type RunEvent, TrainError } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createFailureTally } from './failure-tally.ts'

const ended = (rollout: string, message: string | null, split = 'train'): RunEvent => ({
  type: 'rollout-end',
  at: 0,
  rollout,
  attempt: 0,
  split,
  taskId: 't',
  stopReason: message === null ? 'completed' : 'failed',
  reward: null,
  turns: 0,
  toolCalls: 0,
  sampledTokens: 0,
  durationMs: 0,
  ...(message !== null && { error: { code: 'AGENT_FAILED', boundary: 'agent', retryable: false, message } }),
})

it('says of an empty batch what most rollouts failed of', () => {
  const tally = createFailureTally()
  for (const rollout of ['run/1', 'run/2', 'run/3']) tally.read(ended(rollout, `Rollout ${rollout} has no tool.`))
  tally.read(ended('d', 'Another reason.'))
  tally.read(ended('e', null))
  const explained = tally.explain(new TrainError('TRAINER_EMPTY_BATCH', 'Nothing to train.', { details: { code: 1 } }))
  expect(explained.message).toBe('Nothing to train.\nMost often (3 rollouts): Rollout … has no tool.')
  expect(explained.details).toMatchObject({ code: 1, failures: { 'Another reason.': 1 } })
})

it('leaves other errors as they are', () => {
  const tally = createFailureTally()
  tally.read(ended('a', 'Something.'))
  const error = new TrainError('TRAINER_OUT_OF_MEMORY', 'Full.')
  expect(tally.explain(error)).toBe(error)
})

it('counts why rollouts of an evaluation failed, each evaluation by itself', () => {
  const tally = createFailureTally()
  tally.read(ended('a', 'Of a step.'))
  tally.read(ended('b', 'No unit.', 'test'))
  tally.read(ended('c', 'No unit.', 'test'))
  const failures = [{ code: 'AGENT_FAILED', count: 2, rollout: 'b', message: 'No unit.', source: null }]
  expect(tally.takeEvaluation()).toEqual({ failed: 2, failures, abstained: null })
  expect(tally.takeEvaluation()).toEqual({ failed: 0, failures: [], abstained: null })
})

it('leaves rollouts from which the reward abstained out of the mean of an evaluation', () => {
  const tally = createFailureTally()
  const scored = (rollout: string, taskId: string, reward: number | null): RunEvent => ({
    ...(ended(rollout, null, 'test') as Extract<RunEvent, { type: 'rollout-end' }>),
    taskId,
    reward,
    turns: 1,
  })
  for (const event of [scored('a', 't', 1), scored('b', 't', null), scored('c', 'u', 0), scored('d', 'v', null)]) tally.read(event)
  expect(tally.takeEvaluation().abstained).toEqual({ unscored: 2, reward: 0.5 })
})
