import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

test('results add up to what their rows say, step by step as they finish', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const play = async (key: string, reward: number | null, place: { step?: number; split?: string; group?: string }, turns = 1) => {
    const request = runRequest(key, { kind: 'easy', ...place })
    if (key === 'c') await store.begin(request)
    const { attempt } = await store.begin(request)
    const failure = {
      stopReason: 'failed',
      error: { code: 'REWARD_FAILED', boundary: 'reward', retryable: false, message: 'No.' },
    } as const
    const timing = { startedAt: 1, endedAt: Date.now() + 50 }
    await store.finish(episodeOf(request, attempt, turnChain(attempt, turns), { reward, timing, ...(reward === null && failure) }))
  }
  await play('b', 1, { step: 2, group: 'right' })
  await play('a', 0.1, { step: 1, group: 'mixed' })
  await play('c', 0.7, { step: 1, group: 'mixed' }, 2)
  await play('d', null, { step: 1, group: 'wrong' })
  await play('e', 1, { step: 1, group: 'right' })
  await play('f', 0.5, { split: 'test', step: 0 })
  await play('g', 1, {})
  const first = store.finishedTotals(0)
  const rows = store.rolloutRows({ split: 'train', step: 1 }).rows
  const sumOf = (read: (row: (typeof rows)[number]) => number) => rows.reduce((sum, row) => sum + read(row), 0)
  expect(first).toMatchObject({ last: 7, evaluated: [{ key: 'f', split: 'test', step: 0, taskId: 'task-f', kind: 'easy', reward: 0.5 }] })
  expect(first.incomplete).toEqual([store.rolloutRow('d')])
  expect(first.errors).toEqual([{ code: 'REWARD_FAILED', count: 1, rollout: 'd', message: 'No.', source: null }])
  expect([first.repeated, first.sums.map(({ repeated }) => repeated).sort()]).toEqual([[store.rolloutRow('c')], [0, 0, 1]])
  expect(first.sums).toHaveLength(3)
  expect(first.sums).toContainEqual(expect.objectContaining({ stopReason: 'completed', isTraining: true, rollouts: 5, turns: 6 }))
  expect(first.sums).toContainEqual(expect.objectContaining({ stopReason: 'completed', isTraining: false, rollouts: 1, sampledTokens: 3 }))
  expect(first.sums).toContainEqual(expect.objectContaining({ stopReason: 'failed', isTraining: true, rollouts: 1 }))
  expect(first.steps.map(({ step }) => step).sort()).toEqual([1, 2])
  const step = first.steps.find((each) => each.step === 1)
  expect(step?.rewards.toSorted((a, b) => a - b)).toEqual([0, 0.1, 0.7, 1])
  expect(step).toMatchObject({ groups: { right: 1, mixed: 1, wrong: 1 }, turns: 5, toolCalls: 0, tokens: 15, attempts: 1 })
  expect(step!.waitMs.agent).toBeGreaterThan(0)
  for (const part of ['queue', 'engine', 'tools', 'agent'] as const)
    expect(step!.waitMs[part]).toBeCloseTo(
      sumOf(({ waitMs }) => waitMs[part]),
      6,
    )
  expect(store.finishedTotals(7)).toEqual({ last: 7, sums: [], steps: [], evaluated: [], errors: [], incomplete: [], repeated: [] })
  await play('h', 1, { step: 2, group: 'right' })
  const { steps, ...rest } = store.finishedTotals(7)
  expect([steps.map((each) => [each.step, each.rewards]), rest.last, rest.sums.length]).toEqual([[[2, [1, 1]]], 8, 1])
  for (let index = 0; index <= 100; index++) await play(`i${index}`, null, { step: 3 })
  const many = store.finishedTotals(8)
  expect(many.incomplete.map(({ key }) => key)).toEqual(Array.from({ length: 100 }, (_, index) => `i${index}`))
  expect(many.errors).toEqual([{ code: 'REWARD_FAILED', count: 101, rollout: 'i0', message: 'No.', source: null }])
  await store.close()
})

test('groups that go on stand under the next step, whose results can be asked for although they finished before', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  for (const [key, group, reward] of [
    ['a', 'quick', 1],
    ['b', 'slow', 0.5],
  ] as const) {
    const request = runRequest(key, { group, step: 1 })
    const { attempt } = await store.begin(request)
    await store.finish(episodeOf(request, attempt, turnChain(attempt, 1), { reward }))
  }
  await store.begin(runRequest('c', { group: 'slow', step: 1 }))
  const rewards = (steps: readonly number[]) => store.finishedTotals(2, steps).steps.map((each) => [each.step, each.rewards])
  expect(rewards([1, 2])).toEqual([[1, [0.5, 1]]])
  await store.commitStep({ step: 1, weightVersion: 1, rollouts: ['a'], carriedGroups: ['slow'], metrics: {}, checkpoint: null })
  expect(rewards([1, 2])).toEqual([
    [1, [1]],
    [2, [0.5]],
  ])
  expect(['a', 'b', 'c'].map((key) => store.rolloutRow(key)?.step)).toEqual([1, 2, 2])
  expect(store.steps()).toEqual([{ step: 1, weightVersion: 1, rollouts: ['a'], metrics: {}, checkpoint: null }])
  await store.close()
})
