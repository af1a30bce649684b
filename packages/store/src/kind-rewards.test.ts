import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

test('rewards of a training step by kind: a failure counts 0, and what abstained, evaluates or goes on counts not', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const play = async (key: string, reward: number | null, place: { step: number; kind: string; split?: string }, isFailed = false) => {
    const request = runRequest(key, place)
    const { attempt } = await store.begin(request)
    const failure = {
      stopReason: 'failed',
      error: { code: 'AGENT_FAILED', boundary: 'agent', retryable: false, message: 'No.' },
    } as const
    await store.finish(episodeOf(request, attempt, turnChain(attempt, 1), { reward, ...(isFailed && failure) }))
  }
  await play('a', 1, { step: 2, kind: 'easy' })
  await play('b', 0.5, { step: 1, kind: 'easy' })
  await play('c', -2, { step: 1, kind: 'easy' })
  await play('d', null, { step: 1, kind: 'hard' }, true)
  await play('e', null, { step: 1, kind: 'hard' })
  await play('f', 1, { step: 1, kind: 'easy', split: 'test' })
  await store.begin(runRequest('g', { step: 1, kind: 'easy' }))
  const ofOne = [
    { step: 1, kind: 'easy', rollouts: 2, sum: -1.5, least: -2, greatest: 0.5 },
    { step: 1, kind: 'hard', rollouts: 1, sum: 0, least: 0, greatest: 0 },
  ]
  expect(store.kindRewards(1)).toEqual(ofOne)
  expect(store.kindRewards()).toEqual([...ofOne, { step: 2, kind: 'easy', rollouts: 1, sum: 1, least: 1, greatest: 1 }])
  expect(store.kindRewards(3)).toEqual([])
  await store.close()
})
