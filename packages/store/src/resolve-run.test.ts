import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { resolveRun } from './resolve-run.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

const command = { name: 'elements', configurationHash: 'abc' }

async function start(runPath: string, overrides: Partial<typeof command & { fresh: boolean; finished: boolean }> = {}): Promise<string> {
  const { fresh = true, finished = false, ...rest } = overrides
  const manifest = { ...command, ...rest }
  const { path } = await resolveRun({ runPath, ...manifest, fresh })
  const store = await openRunStore({ path, manifest })
  if (finished) await store.complete()
  await store.close()
  return path
}

test('the first command makes a run named after the example and the time', async () => {
  await using folder = await temporaryFolder()
  const runPath = join(folder.path, 'deep', 'runs')
  const { path, resumed } = await resolveRun({ runPath, ...command })
  expect(resumed).toBe(false)
  expect(basename(path)).toMatch(/^elements-\d{8}-\d{6}$/)
  expect(await readdir(runPath)).toEqual([basename(path)])
})

test('the same command resumes the newest unfinished run of equal configuration', async () => {
  await using folder = await temporaryFolder()
  const runPath = folder.path
  const old = await start(runPath)
  await start(runPath, { configurationHash: 'other' })
  await start(runPath, { name: 'another' })
  await start(runPath, { finished: true })
  await mkdir(join(runPath, 'no run'))
  await writeFile(join(runPath, 'file'), '')
  expect(await resolveRun({ runPath, ...command })).toEqual({ path: old, resumed: true })
  const newer = await start(runPath)
  expect(await resolveRun({ runPath, ...command })).toEqual({ path: newer, resumed: true })
})

const manifests: readonly [name: string, code: string, text: string | null][] = [
  ['no JSON', 'STORE_CORRUPT', '{"version":1,"na'],
  ['empty', 'STORE_CORRUPT', ''],
  ['missing beside the database', 'STORE_CORRUPT', null],
  ['of another version', 'STORE_VERSION', '{"version":7}'],
]

test.each(manifests)('where a manifest is %s nothing is started or resumed in its place', async (_name, code, text) => {
  await using folder = await temporaryFolder()
  const runPath = folder.path
  await start(runPath)
  const path = await start(runPath)
  const file = join(path, 'manifest.json')
  await (text === null ? rm(file) : writeFile(file, text))
  const before = await readdir(runPath)
  const refused = { code, message: expect.stringMatching(`${file} cannot be used .*Put the file back, move .* away, or .* --new`) }
  await expect(resolveRun({ runPath, ...command })).rejects.toMatchObject(refused)
  expect(await readdir(runPath)).toEqual(before)
  expect((await resolveRun({ runPath, ...command, fresh: true })).resumed).toBe(false)
  expect((await resolveRun({ runPath, ...command, name: 'another' })).resumed).toBe(false)
})

test('a new run is made when asked for, or when every other is finished', async () => {
  await using folder = await temporaryFolder()
  const done = await start(folder.path, { finished: true })
  const next = await resolveRun({ runPath: folder.path, ...command })
  expect(next.resumed).toBe(false)
  expect(next.path).not.toBe(done)
  await openRunStore({ path: next.path, manifest: command }).then((store) => store.close())
  const forced = await resolveRun({ runPath: folder.path, ...command, fresh: true })
  expect(forced.resumed).toBe(false)
  expect(new Set([done, next.path, forced.path]).size).toBe(3)
})

test('a finished run of an earlier format stands in nobody’s way', async () => {
  await using folder = await temporaryFolder()
  const path = await start(folder.path, { finished: true })
  const manifest = join(path, 'manifest.json')
  await writeFile(manifest, (await readFile(manifest, 'utf8')).replace('"version": 2', '"version": 1'))
  expect((await resolveRun({ runPath: folder.path, ...command })).resumed).toBe(false)
})

test('a named run is resumed, finished or not', async () => {
  await using folder = await temporaryFolder()
  const path = await start(folder.path, { finished: true })
  expect(await resolveRun({ runPath: folder.path, ...command, resume: basename(path) })).toEqual({ path, resumed: true })
  expect(await resolveRun({ runPath: 'elsewhere', ...command, resume: path })).toEqual({ path, resumed: true })
})

test('a named run that is missing, or of another configuration, is refused with what there is', async () => {
  await using folder = await temporaryFolder()
  const missing = { runPath: folder.path, ...command, resume: 'nothing' }
  await expect(resolveRun(missing)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('There is no run in'),
  })
  const path = await start(folder.path)
  await expect(resolveRun(missing)).rejects.toThrow(basename(path))
  await expect(resolveRun({ ...missing, configurationHash: 'other', resume: basename(path) })).rejects.toThrow('another configuration')
  const other = { ...missing, configurationHash: 'other', resume: basename(path) }
  const manifest = JSON.parse(await readFile(join(path, 'manifest.json'), 'utf8'))
  const inputs = { 'the agent': '1', 'the reward': '2', 'the setting seed': '3' }
  await writeFile(join(path, 'manifest.json'), JSON.stringify({ ...manifest, provenance: { inputs } }))
  const named = resolveRun({ ...other, inputs: { 'the agent': '9', 'the reward': '2', 'the test tasks': '4' } })
  await expect(named).rejects.toThrow('What differs: the agent, the setting seed, the test tasks. Use those of that run')
  await expect(resolveRun({ ...missing, fresh: true })).rejects.toThrow('exclude each other')
  expect(await readdir(folder.path)).toEqual([basename(path)])
})

test('a place that takes no folder is named', async () => {
  await using folder = await temporaryFolder()
  await symlink('/dev/null', join(folder.path, 'file'))
  await expect(resolveRun({ runPath: join(folder.path, 'file', 'runs'), ...command })).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
})
