import type { RolloutRequest } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { drawTasks, missingKinds } from '../loop/draw-tasks.ts'
import { evaluationRequests, summarizeTasks } from '../loop/evaluate.ts'
import { groupRequests } from '../loop/group-requests.ts'
import { requireDataset } from './load-dataset.ts'
import { requireColumn } from './task-column.ts'

const { tasks } = await requireDataset([
  { id: 'a', question: '1', answer: 1, kind: 'easy' },
  { id: 'b', question: '2', answer: 1, kind: 'hard' },
  { id: 'c', question: '3', answer: 1, extra_info: { kind: 'hard' } },
  { id: 'd', question: '4', answer: 1, data: { kind: 'odd' }, data_source: 'other' },
])

it('stratify counts kinds in a column of the row, of extra_info and of data, and data sources', () => {
  const draw = (key: string, counts: Record<string, number>) => {
    const promptsPerStep = Object.values(counts).reduce((sum, count) => sum + count, 0)
    const drawn = drawTasks(tasks, { seed: 1, step: 1, promptsPerStep, stratify: { key, counts } })
    return drawn.map(({ id }) => id).sort()
  }
  expect(draw('kind', { easy: 1, hard: 2, odd: 1 })).toEqual(['a', 'b', 'c', 'd'])
  expect(draw('data_source', { other: 1 })).toEqual(['d'])
  expect(missingKinds(tasks, { key: 'kind', counts: { easy: 1, strange: 1 } })).toEqual(['strange'])
})

it('results are split by the same column', () => {
  const groups = tasks.map((task, index) => ({
    task,
    episodes: [{ rollout: task.id, reward: index, stopReason: 'completed' as const, turns: 1 }],
  }))
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 1, stop: [], seed: 0 }
  const { byKind } = summarizeTasks({ name: 'test', step: 0, sampling, kindKey: 'kind' }, groups)
  expect(byKind).toEqual({ easy: { rollouts: 1, reward: 0 }, hard: { rollouts: 2, reward: 1.5 }, odd: { rollouts: 1, reward: 3 } })
})

it('rollouts carry the kind of their task and the step that they are for', () => {
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 1, stop: [], seed: 0 }
  const shared = { tasks, step: 4, sampling, policy: 'tiny', limits: {} }
  const evaluation = { ...shared, name: 'test', split: 'test', samplesPerPrompt: 1 }
  const places = (requests: readonly RolloutRequest[]) => requests.map(({ task, step, kind }) => `${task.id} ${step} ${kind}`).sort()
  const withKey = ['a 4 easy', 'b 4 hard', 'c 4 hard', 'd 4 odd']
  expect(places(evaluationRequests({ ...evaluation, kindKey: 'kind' }))).toEqual(withKey)
  expect(places(evaluationRequests({ ...evaluation, kindKey: null })).at(3)).toBe('d 4 other')
  const training = { ...parseLocalConfig({}).config.training, promptsPerStep: 4, samplesPerPrompt: 1 }
  const groups = [0, 1, 2, 3].map((draw) => ({ draw, admitted: 4, emptied: 0, samples: 8 }))
  expect(places(groupRequests(groups, { ...shared, training, seed: 1, kindKey: 'kind' }).flat())).toEqual(withKey)
})

it('a column that no task has is refused with the one that was meant', () => {
  expect(() => requireColumn(tasks, 'kind', 'evaluation.kindKey')).not.toThrow()
  expect(() => requireColumn(tasks, 'knd', 'evaluation.kindKey')).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/^evaluation\.kindKey names the column "knd", which no task has.*Did you mean "kind"\?$/),
    }),
  )
})
