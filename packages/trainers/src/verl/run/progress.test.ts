import type { RunEvent } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createTrainerProgress, type TrainerStep } from '../../shared/training/progress.ts'
import { verlTrainer } from '../verl-trainer.ts'

const seconds = (values: Record<string, number>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`timing_s/${name}`, value]))

/** One second passes with every event. */
function follow(options: {
  steps: number
  resumedFromStep?: number
  evaluated?: Parameters<typeof createTrainerProgress>[0]['evaluated']
}) {
  const events: RunEvent[] = []
  const ended: TrainerStep[] = []
  let clock = 0
  const progress = createTrainerProgress({
    trainer: verlTrainer,
    resumedFromStep: 0,
    evaluation: { tasks: 4, rollouts: 8 },
    evaluated: () => ({ failed: 0, failures: [], abstained: null }),
    ...options,
    now: () => clock,
    onEvent: (event) => events.push(event),
    onStep: (step) => ended.push(step),
  })
  const shown = () =>
    events.map((event) => {
      if (event.type === 'phase-progress') return `${event.phase} ${event.done}/${event.total}`
      return 'step' in event ? `${event.type} ${event.step}` : event.type
    })
  const after = (ms: number) => {
    clock += ms
    return progress
  }
  return { events, ended, progress, shown, after }
}

it('tells a run with evaluations in its order', () => {
  const { progress, shown, after, events } = follow({ steps: 2 })
  after(1_000).line("ray init kwargs: {'num_cpus': 16}")
  after(1_000).line('(TaskRunnerV1 pid=12) train and validate dataloader initialized')
  after(3_000).queued('val')
  after(4_000).metrics({ step: 0, data: { 'val-core/pt/acc/mean@1': 0.25, 'val-core/pt/reward/mean@1': 0.5 } })
  after(0).queued('train')
  after(2_000).metrics({
    step: 1,
    data: { 'critic/score/mean': 0.5, ...seconds({ step: 2, gen: 1, update_actor: 0.5, update_weights: 0.25 }) },
  })
  after(0).queued('train')
  after(1_000).queued('val')
  after(1_000).metrics({
    step: 2,
    data: { 'critic/score/mean': 0.75, 'val-core/pt/acc/mean@1': 1, ...seconds({ step: 2, testing: 1, save_checkpoint: 0.5 }) },
  })
  expect(shown()).toEqual([
    'start verl 1/4',
    'start verl 3/4',
    'start verl 4/4',
    'evaluation-start',
    'evaluation-end 0',
    'step-start 1',
    'weights-updated',
    'step-end 1',
    'step-start 2',
    'evaluation-start',
    'evaluation-end 2',
    'weights-updated',
    'step-end 2',
    'checkpoint-saved 2',
  ])
  expect(events.find(({ type }) => type === 'evaluation-end')).toMatchObject({
    name: 'test',
    metrics: { reward: 0.25, tasks: 4, rollouts: 8 },
  })
  expect(events.find(({ type }) => type === 'step-end')).toMatchObject({
    steps: 2,
    metrics: { rewardMean: 0.5, rolloutMs: 1000, updateMs: 500, weightSyncMs: 250, otherMs: 250, secondsLeft: 2, 'critic/score/mean': 0.5 },
  })
  expect(progress.phasesMs()).toEqual({
    start: 5_000,
    validation: 5_000,
    rollout: 1_000,
    update: 500,
    'weight-sync': 250,
    checkpoint: 500,
    other: 1_750,
  })
})

it('begins with the step behind the checkpoint', () => {
  const { shown, after, ended } = follow({ steps: 4, resumedFromStep: 2 })
  after(0).queued('train')
  after(1_000).metrics({ step: 3, data: { 'critic/score/mean': 0.5, ...seconds({ step: 1 }) } })
  expect(shown()).toEqual(['start verl 4/4', 'step-start 3', 'weights-updated', 'step-end 3', 'step-start 4'])
  expect(ended).toMatchObject([{ step: 3, saved: false }])
})

it('shows what verl did not say as missing', () => {
  const { after, events } = follow({ steps: 1 })
  after(0).queued('train')
  after(1_000).metrics({ step: 1, data: { 'critic/score/mean': null, 'actor/pg_loss': 0.5, ...seconds({ step: 1 }) } })
  const end = events.find(({ type }) => type === 'step-end')
  expect(end).toMatchObject({ metrics: { loss: 0.5 } })
  expect(end).not.toHaveProperty('metrics.rewardMean')
})

it('ends with an evaluation of which every rollout failed, and says why they did', () => {
  const failures = [{ code: 'REWARD_FAILED', count: 8, rollout: 'a', message: 'No unit.', source: '/p/reward.ts:3' }]
  const { events, after } = follow({ steps: 2, evaluated: () => ({ failed: 8, failures, abstained: null }) })
  after(0).queued('val')
  expect(() => after(1).metrics({ step: 0, data: { 'val-core/pt/acc/mean@1': 0 } })).toThrow(
    expect.objectContaining({
      code: 'EVALUATION_FAILED',
      message: expect.stringContaining('8 of REWARD_FAILED at /p/reward.ts:3, first a: No unit.'),
    }),
  )
  expect(events.at(-1)).toMatchObject({ type: 'evaluation-end', failures })
})
