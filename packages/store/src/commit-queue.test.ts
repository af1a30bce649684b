import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCommitQueue } from './commit-queue.ts'
import { createEncodedWrites } from './encoded-writes.ts'
import { openRunDatabase, startWriteAheadLog } from './run-database.ts'
import { createRunQueries } from './run-queries.ts'
import { createRunWrites, type RunWrites } from './run-writes.ts'
import { createSegmentWriter, type SegmentWriter } from './segment-writer.ts'
import { toStoreError } from './store-error.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

/** The parts of a store with a fault in between. */
async function openParts(path: string, faulty: (segments: SegmentWriter) => SegmentWriter = (segments) => segments) {
  const database = openRunDatabase(path)
  startWriteAheadLog(database)
  const segments = faulty(await createSegmentWriter({ directory: join(path, 'segments'), end: { segment: 1, offset: 0 }, maxBytes: 200 }))
  const queries = createRunQueries(path, database)
  const onError = (error: unknown) => toStoreError(error, path)
  const log = await open(join(path, 'run.db-wal'), 'r+')
  const queue = createCommitQueue({ database, segments, log, gather: nextTurn, onError })
  return {
    database,
    queries,
    queue,
    writes: createRunWrites(createEncodedWrites(database, queue, queries)),
    async [Symbol.asyncDispose]() {
      await queue.close()
      queries.close()
      database.close()
      await segments.close()
    },
  }
}

/** Keeps two rollouts, repeating each write until it succeeds. Returns how often a write failed. */
async function persist({ begin, appendTurn, finish }: RunWrites, onFailure: (error: { code: string }) => void): Promise<void> {
  const insist = async <T>(write: () => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries++) {
      try {
        return await write()
      } catch (error) {
        onFailure(error as { code: string })
        if (tries === 3) throw error
      }
    }
  }
  for (const key of ['a', 'b']) {
    const request = runRequest(key)
    const { attempt } = await insist(() => begin(request))
    const turns = turnChain(attempt, 3)
    for (const turn of turns) await insist(() => appendTurn(key, attempt, 'agent', turn))
    await insist(() => finish(episodeOf(request, attempt, turns)))
  }
}

test('whichever append fails, what is tried again is kept once and reads back whole', async () => {
  let failedEver = 0
  for (let failing = 0; failing < 7; failing++) {
    await using folder = await temporaryFolder()
    let appends = 0
    const codes: string[] = []
    await using parts = await openParts(folder.path, (segments) => ({
      ...segments,
      async append(chunks) {
        if (appends++ === failing) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
        return segments.append(chunks)
      },
    }))
    await persist(parts.writes, ({ code }) => codes.push(code))
    expect(codes).toEqual(failing < 6 ? ['STORE_FULL'] : [])
    failedEver += codes.length
    expect(Array.from(parts.queries.episodes(), ({ trajectories }) => trajectories[0]!.turns)).toEqual([turnChain(0, 3), turnChain(0, 3)])
    expect(parts.queries.counts().turns).toBe(6)
  }
  expect(failedEver).toBe(6)
})

test('whichever page the database has no room for, a batch is there whole or not at all', async () => {
  let failedEver = 0
  for (let pages = 0; pages < 8; pages++) {
    await using folder = await temporaryFolder()
    await using parts = await openParts(folder.path)
    const used = pageCount(parts.database)
    parts.database.exec(`PRAGMA max_page_count = ${used + pages}`)
    const big = 'x'.repeat(20_000)
    await persist(
      { ...parts.writes, begin: (request) => parts.writes.begin({ ...request, task: { ...request.task, input: big } }) },
      ({ code }) => {
        expect(code).toBe('STORE_FULL')
        failedEver++
        expect(parts.database.isTransaction).toBe(false)
        expect(parts.queries.counts().finished).toBe([...parts.queries.episodes()].length)
        parts.database.exec(`PRAGMA max_page_count = ${used + 1000}`)
      },
    )
    expect(parts.queries.counts()).toMatchObject({ rollouts: 2, finished: 2, turns: 6 })
  }
  expect(failedEver).toBeGreaterThan(2)
})

test('a refused write leaves the others of its batch alone', async () => {
  await using folder = await temporaryFolder()
  await using parts = await openParts(folder.path)
  const { begin, appendTurn, setState } = parts.writes
  await begin(runRequest('a'))
  const [turn] = turnChain(0, 1)
  const results = await Promise.allSettled([
    setState('before', 1),
    appendTurn('unknown', 0, 'agent', turn!),
    appendTurn('a', 0, 'agent', turn!),
    setState('after', 2),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect([parts.queries.getState('before'), parts.queries.getState('after'), parts.queries.counts().turns]).toEqual([1, 2, 1])
})

test('an error of the database undoes its whole batch', async () => {
  await using folder = await temporaryFolder()
  await using parts = await openParts(folder.path)
  const broken = { synced: false, apply: () => parts.database.exec('INSERT INTO nowhere VALUES (1)') }
  const results = await Promise.allSettled([
    parts.writes.setState('first', 1),
    parts.queue.commit(broken),
    parts.writes.setState('last', 1),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect([parts.queries.getState('first'), parts.queries.getState('last')]).toEqual([undefined, undefined])
  await parts.writes.setState('later', 1)
  expect(parts.queries.getState('later')).toBe(1)
})

test('tokens flow over into further segments and read back', async () => {
  await using folder = await temporaryFolder()
  await using parts = await openParts(folder.path)
  await persist(parts.writes, (error) => {
    throw error
  })
  const segments = parts.database.prepare('SELECT DISTINCT segment FROM turns ORDER BY segment').all()
  expect(segments.length).toBeGreaterThan(1)
  expect(Array.from(parts.queries.episodes(), ({ trajectories }) => trajectories[0]!.turns)).toEqual([turnChain(0, 3), turnChain(0, 3)])
})

function pageCount(database: DatabaseSync): number {
  return database.prepare('PRAGMA page_count').get()?.['page_count'] as number
}
