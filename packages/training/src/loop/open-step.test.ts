import type { Episode, TrainingSample, Trajectory, UpdateMetrics } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { rewardInput } from '../testing/reward-input.ts'
import { OpenStep } from './open-step.ts'
import { rowsOf, rowsOfUntrained } from './step-samples.ts'

const settings = { ownReward: 0 }

const toEpisode = (changes: Partial<Episode>): Episode => ({ ...rewardInput().episode, ...changes })
/** An invocation with one turn, of which the reward may abstain. */
const answered = { agent: 'agent', trainable: true, turns: [{ completionTokenIds: Int32Array.of(1, 2) }] } as unknown as Trajectory
const toSample = (rollout: string, trajectory = 'agent') =>
  ({
    agent: 'agent',
    trajectory,
    policy: 'model',
    advantage: 1,
    lossMask: Uint8Array.of(0, 1),
    provenance: { rollout, turns: [0] },
  }) as unknown as TrainingSample
const toMetrics = (loss: number, logprobs: readonly number[]): UpdateMetrics => ({
  loss,
  clipFraction: 0,
  entropy: 0,
  kl: 0,
  trainedTokens: logprobs.length,
  logprobs: logprobs.map((logprob) => Float32Array.of(logprob)),
})

test('a step without updates or rewards has no mean of them, and says what failed', () => {
  const step = new OpenStep(3, false)
  expect(step.metrics(settings)).toEqual({
    rollouts: 0,
    failedEpisodes: 0,
    sampledTokens: 0,
    trainedTokens: 0,
    updates: 0,
    rolloutMs: 0,
    updateMs: 0,
  })
  const error = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'It is gone.' } as const
  step.addEpisodes([toEpisode({ stopReason: 'failed', error })])
  expect(step.metrics(settings)).toMatchObject({ rollouts: 1, failedEpisodes: 1 })
  expect(step.metrics(settings)).not.toHaveProperty('rewardMean')
})

test('the metrics of a step are of all its calls and updates', () => {
  const step = new OpenStep(3, false)
  expect([step.beginCall(), step.beginCall()]).toEqual([0, 1])
  step.addEpisodes([toEpisode({ reward: 1 })])
  step.addEpisodes([toEpisode({ reward: 0 }), toEpisode({ reward: null, trajectories: [answered] })])
  step.difference = 0.25
  const samples = [toSample('first'), toSample('second')]
  step.addUpdate(samples, toMetrics(4, [-1, -2]), { rows: rowsOf(samples), trainedTokens: 2 })
  step.addUpdate(samples.slice(1), toMetrics(1, [-3]), { rows: [], trainedTokens: 0 })
  const startedAt = performance.now()
  step.addTime('rollout', startedAt - 1000)
  step.addTime('rollout', startedAt - 2000)
  step.addTime('update', startedAt - 4000)
  const { rolloutMs, updateMs, ...metrics } = step.metrics(settings)
  expect(metrics).toMatchObject({
    rewardMean: 0.5,
    rollouts: 3,
    failedEpisodes: 0,
    sampledTokens: 2,
    trainedTokens: 2,
    updates: 2,
    loss: 3,
    maxLogprobDifference: 0.25,
  })
  expect(rolloutMs).toBeGreaterThan(2999)
  expect(updateMs).toBeGreaterThan(3999)
})

test('a trained sample keeps the logprobs of its first update, and a rollout of several rows is trained once', () => {
  const step = new OpenStep(3, false)
  const samples = [toSample('first'), toSample('first', 'second')]
  const turns = { agent: 'agent', trajectory: 'agent', policy: 'model', turns: [0], tokens: 5, reason: 'failed-episode' } as const
  step.addRows(rowsOfUntrained('failed', [turns]))
  step.addUpdate(samples, toMetrics(0, [-1, -2]), { rows: rowsOf(samples), trainedTokens: 2 })
  step.addUpdate(samples, toMetrics(0, [-3, -4]), { rows: [], trainedTokens: 0 })
  expect(step.trainedRollouts()).toEqual(['first'])
  expect(step.samples().map(({ rollout, reason, trainerLogprobs }) => [rollout, reason, trainerLogprobs])).toEqual([
    ['failed', 'failed-episode', null],
    ['first', null, Float32Array.of(-1)],
    ['first', null, Float32Array.of(-2)],
  ])
  expect(step.samples().every((row) => row.step === 3)).toBe(true)
})
