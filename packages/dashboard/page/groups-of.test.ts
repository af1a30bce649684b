import type { RolloutRow, SampleSummary } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { type Group, verdictOf } from './groups-of.ts'

/** A group of a step with these rewards, each of a sample with this reason. */
const groupOf = (rewards: readonly number[], reason: SampleSummary['reason'], isSampled = true): Group => ({
  ...{ id: 'train/1/0', label: '0', kind: '', task: { question: 'q', answer: null } },
  rows: rewards.map((reward, i) => ({ key: `train/1/0/${i}`, split: 'train', status: 'done', reward }) as RolloutRow),
  samples: rewards.map((_, i) => (isSampled ? ({ rollout: `train/1/0/${i}`, advantage: 0, reason } as SampleSummary) : null)),
})

it.each<[string, Group, number | null, ReturnType<typeof verdictOf>]>([
  ['ended early', groupOf([1, 1, 1, 1], 'zero-variance-group'), 8, { name: 'nothing', why: '4 of 8, solved' }],
  ['ended early with rewards that differ', groupOf([1, 2], null), 8, { name: 'teaches', why: '2 of 8, solved' }],
  ['has all its samples', groupOf([1, 1], 'zero-variance-group'), 2, { name: 'nothing', why: 'nothing: all right' }],
  ['is of a run without early ends', groupOf([1, 1], 'zero-variance-group'), null, { name: 'nothing', why: 'nothing: all right' }],
  ['teaches', groupOf([0, 1, 1], null), 3, { name: 'teaches', why: '2 of 3 right' }],
  ['waits for its step', groupOf([1, 1], null, false), 8, { name: 'waiting', why: 'not trained yet' }],
])('says of a group that it %s', (_, group, samplesPerPrompt, verdict) => {
  expect(verdictOf(group, null, samplesPerPrompt)).toEqual(verdict)
})
