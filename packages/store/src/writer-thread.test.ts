import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

test('what a thread of its own writes is durable when that is acknowledged, and is there for the next owner', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path, thread: true })
  const turns = turnChain(0, 3)
  await store.begin(runRequest('a'))
  await store.begin(runRequest('before'))
  await Promise.all(turns.slice(0, 2).map((turn) => store.appendTurn('a', 0, 'agent', turn)))
  const reader = readRun(folder.path)
  expect(reader.counts()).toMatchObject({ rollouts: 2, turns: 2, sampledTokens: 6 })
  reader.close()
  // The result brings the last turn with it.
  await store.finish(episodeOf(runRequest('a'), 0, turns))
  expect(store.episode('a')?.trajectories[0]?.turns).toEqual(turns)
  await store.close()
  const again = await openRunStore({ path: folder.path })
  expect(again.episode('a')?.trajectories[0]?.turns).toEqual(turns)
  expect((await again.begin(runRequest('before'))).attempt).toBe(1)
  await again.close()
})

test('of turns that are written together those are refused that may not be, with errors of the catalogue', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path, thread: true })
  await store.begin(runRequest('a'))
  const [first, second] = turnChain(0, 2)
  const written = await Promise.allSettled([
    store.appendTurn('unknown', 0, 'agent', first!),
    store.appendTurn('a', 0, 'agent', first!),
    store.appendTurn('a', 1, 'agent', turnChain(1, 1)[0]!),
    store.appendTurn('a', 0, 'agent', second!),
    store.appendTurn('a', 0, 'agent', turnChain(0, 1, 2)[0]!),
  ])
  expect(written.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled', 'rejected'])
  for (const index of [0, 2, 4]) expect(written[index]).toMatchObject({ reason: { code: 'STORE_CONFLICT' } })
  expect(written[4]).toMatchObject({ reason: { message: expect.stringContaining('other tokens') } })
  expect(store.counts().turns).toBe(2)
  await store.close()
  await expect(store.setState('late', 1)).rejects.toMatchObject({ code: 'STORE_FAILED' })
})
