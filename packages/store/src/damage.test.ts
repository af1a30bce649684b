import { appendFile, cp, mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readEvents } from './read-events.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

/** A folder with a closed run of three rollouts, to be damaged. */
async function madeRun() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path, manifest: { name: 'made', configurationHash: 'abc' } })
  for (const key of ['a', 'b', 'c']) {
    const turns = turnChain(0, 3)
    await store.begin(runRequest(key))
    for (const turn of turns) await store.appendTurn(key, 0, 'agent', turn)
    await store.finish(episodeOf(runRequest(key), 0, turns))
  }
  store.appendEvent({ type: 'step-start', at: 1, step: 0, steps: 1 })
  await store.close()
  const files = { database: join(path, 'run.db'), segment: join(path, 'segments', '000001.bin'), manifest: join(path, 'manifest.json') }
  return { path, ...files, events: join(path, 'events.jsonl'), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

async function overwrite(path: string, offset: number, text: string): Promise<void> {
  await using file = await open(path, 'r+')
  await file.write(text, offset)
}

type Run = Awaited<ReturnType<typeof madeRun>>

const damages: readonly [name: string, code: string, says: string, damage: (run: Run) => Promise<unknown>][] = [
  ['a database of another version', 'STORE_VERSION', 'format 99', async ({ database }) => setPragma(database, 'user_version = 99')],
  ['a run of format 1', 'STORE_VERSION', 'has format 1, this version reads 3', ({ manifest }) => writeFile(manifest, '{"version":1}')],
  ['a manifest of another version', 'STORE_VERSION', 'format 7', ({ manifest }) => writeFile(manifest, '{"version":7}')],
  [
    'the database of something else',
    'STORE_CORRUPT',
    'not the database of a run',
    async ({ database }) => setPragma(database, 'application_id = 5'),
  ],
  ['a database that is text', 'STORE_CORRUPT', 'not a database', ({ database }) => writeFile(database, 'text '.repeat(2000))],
  ['overwritten pages', 'STORE_CORRUPT', 'damaged', ({ database }) => overwrite(database, 4096, 'x'.repeat(30_000))],
  ['a missing database', 'STORE_CORRUPT', 'missing or empty', ({ database }) => rm(database)],
  ['an empty database', 'STORE_CORRUPT', 'missing or empty', ({ database }) => truncate(database, 0)],
  ['a manifest that is not JSON', 'STORE_CORRUPT', 'manifest.json is not JSON', ({ manifest }) => truncate(manifest, 10)],
  [
    'a manifest without its fields',
    'STORE_CORRUPT',
    'no valid name, createdAt, configurationHash',
    ({ manifest }) => writeFile(manifest, '{"version":3}'),
  ],
]

test.each(damages)('%s is %s and is left as it is', async (_name, code, says, damage) => {
  await using run = await madeRun()
  await damage(run)
  const before = await contents(run.path)
  const opening = openRunStore({ path: run.path })
  await expect(opening).rejects.toMatchObject({ code })
  const { message } = (await opening.catch((error: unknown) => error)) as Error
  expect(message).toContain(says)
  expect(message).toContain(run.path)
  expect(message).toContain('--new')
  expect(await contents(run.path)).toEqual(before)
})

test('a run of another configuration is refused, one of the same is not', async () => {
  await using run = await madeRun()
  await expect(openRunStore({ path: run.path, manifest: { configurationHash: 'other' } })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  await (await openRunStore({ path: run.path, manifest: { configurationHash: 'abc' } })).close()
})

test('a flipped byte of a token is found when it is read, and names the turn', async () => {
  await using run = await madeRun()
  const words = (40 + 6) * 4
  await overwrite(run.segment, words + 4, 'x')
  const reader = readRun(run.path)
  expect(() => reader.episode('a')).toThrow('turn 1 of agent in segment 1')
  expect(() => reader.episode('a')).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }))
  expect(reader.episode('b')?.trajectories[0]?.turns).toEqual(turnChain(0, 3))
  reader.close()
})

test('a reader opens a run with overwritten pages, and names the run where it meets them', async () => {
  await using run = await madeRun()
  const { size } = await stat(run.database)
  await overwrite(run.database, 4096, 'x'.repeat(size - 4096))
  const reader = readRun(run.path)
  const reads = [() => reader.rolloutRows(), () => reader.turnsOf('a'), () => reader.counts(), () => [...reader.episodes()]]
  for (const read of reads) {
    expect(read).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }))
    expect(read).toThrow(run.path)
  }
  reader.close()
})

test('rows are read where tokens are lost, and turns whose tokens are lost are named', async () => {
  await using run = await madeRun()
  await rm(run.segment)
  const reader = readRun(run.path)
  expect(reader.rolloutRows().rows.map(({ key, turns }) => [key, turns])).toEqual(['a', 'b', 'c'].map((key) => [key, 3]))
  expect(() => reader.turnsOf('a')).toThrow('000001.bin')
  reader.close()
  const owner = await openRunStore({ path: run.path })
  expect(owner.damage).toContain('3 of 3 rollouts lost tokens')
  expect(() => owner.turnsOf('a')).toThrow('the tokens of turn 0 of agent were damaged and are lost')
  await owner.close()
})

test('what is deleted while it is open is read on, or named', async (context) => {
  if (process.platform === 'win32') return context.skip('Windows deletes no file that is open')
  await using run = await madeRun()
  const reader = readRun(run.path)
  expect(reader.episode('a')?.reward).toBe(1)
  await rm(run.path, { recursive: true })
  expect(reader.rolloutRows().rows).toHaveLength(3)
  expect(reader.episode('b')?.reward).toBe(1)
  await expect(readEvents(run.path)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  reader.close()
})

test('an orphan tail, an orphan segment and half a line of events are cut off', async () => {
  await using run = await madeRun()
  const [segment, events] = [await readFile(run.segment), await readFile(run.events, 'utf8')]
  await appendFile(run.segment, 'orphan')
  await writeFile(run.segment.replace('000001', '000002'), 'orphan')
  await appendFile(run.events, '{"type":"step-')
  const store = await openRunStore({ path: run.path })
  expect(await readFile(run.segment)).toEqual(segment)
  expect(await readdir(join(run.path, 'segments'))).toEqual(['000001.bin'])
  const turns = turnChain(0, 1)
  await store.begin(runRequest('d'))
  await store.finish(episodeOf(runRequest('d'), 0, turns))
  store.appendEvent({ type: 'step-start', at: 2, step: 1, steps: 2 })
  expect(Array.from(store.episodes(), ({ rollout }) => rollout)).toEqual(['a', 'b', 'c', 'd'])
  await store.close()
  const lines = (await readFile(run.events, 'utf8')).split('\n')
  expect(lines).toEqual([events.trimEnd(), '{"type":"step-start","at":2,"step":1,"steps":2}', ''])
})

test('a folder without a run cannot be read', async () => {
  await using folder = await temporaryFolder()
  await mkdir(join(folder.path, 'empty'))
  expect(() => readRun(join(folder.path, 'empty'))).toThrow('is not a run')
  expect(() => readRun(join(folder.path, 'nowhere'))).toThrow('is not a run')
})

test('a copy of a live run can be opened where its log is copied with it', async () => {
  await using run = await madeRun()
  const store = await openRunStore({ path: run.path })
  await store.begin(runRequest('d'))
  await store.finish(episodeOf(runRequest('d'), 0, turnChain(0, 2)))
  const copy = `${run.path}-copy`
  await cp(run.path, copy, { recursive: true, filter: (source) => !source.endsWith('-shm') && !source.endsWith('run.lock') })
  const copied = await openRunStore({ path: copy })
  expect(Array.from(copied.episodes(), ({ rollout }) => rollout)).toEqual(['a', 'b', 'c', 'd'])
  await copied.close()
  await store.close()
})

function setPragma(path: string, text: string): void {
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA ${text}`)
  database.close()
}

/** Every file but the lock, by name. */
async function contents(path: string): Promise<Record<string, string>> {
  const names = (await readdir(path, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile() && entry.name !== 'run.lock',
  )
  const pairs = names.map(async (entry) => [
    join(entry.parentPath, entry.name),
    await readFile(join(entry.parentPath, entry.name), 'base64'),
  ])
  return Object.fromEntries((await Promise.all(pairs)).sort())
}
