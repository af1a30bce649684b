import type { RunEvent } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { progressLines } from './progress-lines.ts'

const at = 0
const phase = (name: string, done: number, total: number): RunEvent => ({
  type: 'phase-progress',
  at,
  phase: name,
  done,
  total,
  metrics: { loss: 1 / done },
})
const step = (number: number, metrics: Record<string, number>): RunEvent => ({
  type: 'step-end',
  at,
  step: number,
  steps: 2,
  weightVersion: number,
  metrics,
})

test('a run is told of in lines: a few of a long phase, one of each step', () => {
  const lines: string[] = []
  const show = progressLines((line) => lines.push(line))
  const evaluation = { reward: 0.25, low: 0.2, high: 0.3, rollouts: 40 }
  const events: RunEvent[] = [
    ...Array.from({ length: 300 }, (_, index) => phase('warm-up', index + 1, 300)),
    {
      type: 'run-start',
      version: 1,
      at,
      run: 'a',
      path: 'runs/a-1',
      seed: 0,
      resumedFromStep: null,
      details: { policy: 'x', agent: 'a trained; b frozen' },
    },
    { type: 'warning-raised', at, code: 'CONFIG_WARNING', message: 'Something is odd.' },
    { type: 'warning-raised', at, code: 'CONFIG_NOTE', message: 'Something has no effect.' },
    { type: 'evaluation-start', at, name: 'before', rollouts: 40 },
    { type: 'evaluation-end', at, name: 'before', step: 0, metrics: evaluation },
    { type: 'step-start', at, step: 1, steps: 2 },
    { type: 'rollout-start', at, rollout: 'r', attempt: 0, split: 'train' },
    { type: 'weights-updated', at, weightVersion: 1 },
    step(1, { rewardMean: 0.5 }),
    step(2, { 'role/lead/turns': 0, 'role/reader/reward': 0.25, 'role/reader/malformedTurns': 3, 'policy/lead/loss': 1 }),
    ...[72, 144, 216, 288, 352].map((done) => phase('rollout 1', done, 352)),
    { type: 'evaluation-end', at, name: 'after', step: 2, metrics: { ...evaluation, failed: 2 } },
    { type: 'run-end', at, status: 'finished' },
  ]
  for (const event of events) show(event)
  expect(lines).toMatchInlineSnapshot(`
    [
      "warm-up 60/300, loss 0.0167",
      "warm-up 120/300, loss 0.00833",
      "warm-up 180/300, loss 0.00556",
      "warm-up 240/300, loss 0.00417",
      "warm-up 300/300, loss 0.00333",
      "run runs/a-1",
      "agents: a trained; b frozen",
      "warning: Something is odd.",
      "note: Something has no effect.",
      "before: reward 0.250 [0.200, 0.300] on 40 rollouts",
      "step 1/2, reward 0.500",
      "step 2/2, reward missing, lead missing, reader 0.250 (3 malformed)",
      "rollout 1 72/352, loss 0.0139",
      "rollout 1 144/352, loss 0.00694",
      "rollout 1 216/352, loss 0.00463",
      "rollout 1 288/352, loss 0.00347",
      "rollout 1 352/352, loss 0.00284",
      "after: reward 0.250 [0.200, 0.300] on 40 rollouts, 2 failed",
      "run finished",
    ]
  `)
})

test('a run that goes on says from where', () => {
  const lines: string[] = []
  progressLines((line) => lines.push(line))({
    type: 'run-start',
    version: 1,
    at,
    run: 'a',
    path: 'runs/a-1',
    seed: 0,
    resumedFromStep: 7,
    details: {},
  })
  expect(lines).toEqual(['run runs/a-1, resumed after step 7'])
})
