import type { RunEvent } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createRunMetrics } from './run-metrics.ts'

const samplesOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

it('shows the last step and evaluations, and counts rollouts and warnings', async () => {
  const metrics = createRunMetrics({
    steps: () => [{ step: 3, weightVersion: 4, rollouts: [], metrics: { loss: 2, old: 1 }, checkpoint: null }],
  })
  expect(samplesOf(await metrics.registry.metrics())).toContain('aworld_train_run_step 3')
  const ended = { attempt: 0, taskId: 't', reward: 1, turns: 1, toolCalls: 0, sampledTokens: 5, durationMs: 1, at: 0 } as const
  const events: RunEvent[] = [
    ...['a', 'b', 'c'].map((rollout) => ({ type: 'rollout-start', at: 0, rollout, attempt: 0, split: 'train' }) as const),
    { ...ended, type: 'rollout-end', rollout: 'a', split: 'train', stopReason: 'completed' },
    { ...ended, type: 'rollout-end', rollout: 'b', split: 'train', stopReason: 'turn-limit' },
    { type: 'step-end', at: 0, step: 4, steps: 9, weightVersion: 5, metrics: { loss: 0.5 } },
    { type: 'evaluation-end', at: 0, name: 'before', step: 0, metrics: { reward: 0.25 } },
    { type: 'evaluation-end', at: 0, name: 'after', step: 4, metrics: { reward: 0.5 } },
    { type: 'evaluation-end', at: 0, name: 'test', step: 4, metrics: { reward: 0.75 } },
    { type: 'evaluation-end', at: 0, name: 'validation-4', step: 4, metrics: { reward: 0.5 } },
    { type: 'warning-raised', at: 0, code: 'CONFIG_NOTE', message: 'A note that is in no label.' },
  ]
  for (const event of events) metrics.read(event)
  expect(samplesOf(await metrics.registry.metrics())).toEqual([
    'aworld_train_run_step 4',
    'aworld_train_run_weight_version 5',
    'aworld_train_run_step_metric{metric="loss"} 0.5',
    'aworld_train_run_evaluation_metric{evaluation="test",metric="reward"} 0.75',
    'aworld_train_run_evaluation_metric{evaluation="validation",metric="reward"} 0.5',
    'aworld_train_run_rollouts_running 1',
    'aworld_train_run_rollouts_total{split="train",stop_reason="completed"} 1',
    'aworld_train_run_rollouts_total{split="train",stop_reason="turn-limit"} 1',
    'aworld_train_run_sampled_tokens_total{split="train"} 10',
    'aworld_train_run_warnings_total{code="CONFIG_NOTE"} 1',
  ])
})
