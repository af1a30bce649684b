import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { storeWorker } from './testing/child-process.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

const windows = process.platform === 'win32'
const noSignals = 'Windows has no signal that a process could end at by itself'

const databaseFiles = async (path: string) => (await readdir(path)).filter((name) => name.startsWith('run.db')).sort()

/** Finishes a run whose log has grown while another process reads it. Resolves when its owner has closed it. */
async function finishBeside(path: string, read: () => Promise<void>): Promise<void> {
  const store = await openRunStore({ path })
  for (let index = 0; index < 40; index++) {
    const request = runRequest(`${index}`)
    await store.begin(request)
    await store.finish(episodeOf(request, 0, turnChain(0, 3), { answer: 'yes'.repeat(10_000) }))
  }
  expect((await stat(join(path, 'run.db-wal'))).size).toBeGreaterThan(1_000_000)
  await read()
  await store.complete()
  await store.close()
}

test('a finished run keeps no log, also where a process that reads it closes last', async (context) => {
  if (windows) return context.skip(noSignals)
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await using reader = await (async () => {
    let worker: ReturnType<typeof storeWorker> | undefined
    await finishBeside(path, async () => {
      worker = storeWorker(['watch', path])
      await worker.line((line) => line === 'episodes 40')
    })
    return worker as ReturnType<typeof storeWorker>
  })()
  expect((await stat(join(path, 'run.db-wal'))).size).toBe(0)
  reader.process.kill('SIGTERM')
  expect(await reader.exited).toMatchObject({ code: 0, stderr: '' })
  expect(reader.lines.at(-1)).toBe('episodes 40')
  expect(await databaseFiles(path)).toEqual(['run.db'])
})

test('what a reader that was killed has left is gone when the next one closes', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  let reader: ReturnType<typeof storeWorker> | undefined
  await finishBeside(path, async () => {
    reader = storeWorker(['watch', path])
    await reader.line((line) => line === 'episodes 40')
  })
  await reader?.[Symbol.asyncDispose]()
  expect(await databaseFiles(path)).toContain('run.db-wal')
  const next = readRun(path)
  expect(next.counts().finished).toBe(40)
  next.close()
  expect(await databaseFiles(path)).toEqual(['run.db'])
})

test('a transaction that is open at the end delays that until a reader closes, and loses nothing', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  let other: DatabaseSync | undefined
  await finishBeside(path, async () => {
    other = new DatabaseSync(join(path, 'run.db'), { readOnly: true })
    other.exec('BEGIN')
    other.prepare('SELECT count(*) FROM rollouts').get()
  })
  expect(await databaseFiles(path)).toContain('run.db-wal')
  other?.close()
  const reader = readRun(path)
  expect(reader.counts().finished).toBe(40)
  reader.close()
  expect(await databaseFiles(path)).toEqual(['run.db'])
})

test('readers that come and go beside its owner leave a run as it is', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path })
  for (let index = 0; index < 20; index++) {
    const request = runRequest(`${index}`)
    await store.begin(request)
    await store.finish(episodeOf(request, 0, turnChain(0, 2)))
    const reader = readRun(path)
    expect(reader.counts().finished).toBe(index + 1)
    reader.close()
    expect(await databaseFiles(path)).toContain('run.db-wal')
  }
  await store.close()
  expect(await databaseFiles(path)).toEqual(['run.db'])
})
