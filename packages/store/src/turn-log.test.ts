import { once } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import type { TurnBatch, TurnBatchReply } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'
import { turnBatch } from './testing/turn-batch.ts'

async function append(port: MessagePort, batch: TurnBatch): Promise<TurnBatchReply['failures']> {
  port.postMessage(batch)
  const [reply] = (await once(port, 'message')) as [TurnBatchReply]
  return reply.failures
}

test('turns that another thread hands over are durable when it hears so, and are the turns of the result', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  await store.begin(runRequest('before'))
  const port = store.turnLog!.connect()
  await store.begin(runRequest('a'))
  const turns = turnChain(0, 3)
  expect(await append(port, turnBatch('a', turns.slice(0, 2)))).toEqual([])
  const reader = readRun(folder.path)
  expect(reader.counts()).toMatchObject({ rollouts: 2, turns: 2, sampledTokens: 6 })
  reader.close()
  // The last turn was not handed over: the result brings it along.
  await store.finish(episodeOf(runRequest('a'), 0, turns))
  expect(store.episode('a')?.trajectories[0]?.turns).toEqual(turns)
  await store.close()
  const again = await openRunStore({ path: folder.path })
  expect(again.episode('a')?.trajectories[0]?.turns).toEqual(turns)
  expect((await again.begin(runRequest('before'))).attempt).toBe(1)
  await again.close()
})

test('of a batch those turns are refused that may not be written', async () => {
  await using folder = await temporaryFolder()
  await using stack = new AsyncDisposableStack()
  const store = stack.adopt(await openRunStore({ path: folder.path }), (each) => each.close())
  const port = store.turnLog!.connect()
  await store.begin(runRequest('a'))
  const [first, second] = turnChain(0, 2)
  expect(await append(port, turnBatch('unknown', [first!]))).toMatchObject([{ turn: 0, code: 'STORE_CONFLICT' }])
  expect(await append(port, turnBatch('a', [first!, turnChain(1, 1)[0]!, second!]))).toMatchObject([{ turn: 1, code: 'STORE_CONFLICT' }])
  expect(await append(port, turnBatch('a', [first!, second!]))).toEqual([])
  const other = turnBatch('a', turnChain(0, 1, 2))
  expect(await append(port, other)).toMatchObject([{ code: 'STORE_CONFLICT', message: expect.stringContaining('other tokens') }])
  expect(store.counts().turns).toBe(2)
})

test('errors of writes in the thread are those of the catalogue', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  store.turnLog!.connect()
  await expect(store.appendTurn('a', 0, 'agent', turnChain(0, 1)[0]!)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
  await store.close()
  await expect(store.setState('late', 1)).rejects.toThrow()
})
