import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { checkHistory } from './testing/check-history.ts'
import { storeWorker } from './testing/child-process.ts'
import { temporaryFolder } from './testing/run-fixtures.ts'

const windows = process.platform === 'win32'
const noModes = 'Windows has no file modes that forbid writing in a folder'

test('a disk that fills at any point keeps what was acknowledged, and the same run goes on when there is room', async (context) => {
  if (windows) return context.skip('the size of files is limited by ulimit, which Windows lacks')
  await using folder = await temporaryFolder()
  const outcomes = new Set<string>()
  for (const fileBlocks of [8, 110, 160, 260]) {
    const path = join(folder.path, `run-${fileBlocks}`)
    await using limited = storeWorker(['work', path, '40'], { fileBlocks })
    const { stderr } = await limited.exited
    expect(stderr).toBe('')
    const last = limited.lines.at(-1)!
    outcomes.add(last.startsWith('error STORE_FULL') ? 'full' : last)
    expect(last).toMatch(/^(error STORE_FULL .*Free space|end$)/)
    if (!limited.lines.includes('open')) expect(existsSync(path)).toBe(false)
    else expect(checkHistory(path, limited.lines)).toEqual([])
    await using again = storeWorker(['work', path, '40'])
    expect(await again.exited).toMatchObject({ code: 0, stderr: '' })
    expect(checkHistory(path, [...limited.lines, ...again.lines])).toEqual([])
  }
  expect(outcomes).toContain('full')
})

test('a folder that cannot be written is refused before anything is made', async (context) => {
  if (windows) return context.skip(noModes)
  await using folder = await temporaryFolder()
  const parent = join(folder.path, 'parent')
  await mkdir(parent)
  const nobody = process.getuid!() === 0 ? 65_534 : undefined
  if (nobody !== undefined) await chown(folder.path, nobody, nobody)
  await chmod(parent, 0o555)
  await using worker = storeWorker(['hold', join(parent, 'run')], { uid: nobody })
  expect((await worker.exited).stderr).toBe('')
  expect(worker.lines).toEqual([expect.stringMatching(/^error STORE_READ_ONLY .*Make the run folder writable/)])
  await chmod(parent, 0o755)
  expect(existsSync(join(parent, 'run'))).toBe(false)
})

test('a closed run is read where nothing may be written', async (context) => {
  if (windows) return context.skip(noModes)
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await using made = storeWorker(['work', path, '4'])
  await made.exited
  expect((await readdir(path)).filter((name) => name.startsWith('run.db'))).toEqual(['run.db'])
  const nobody = process.getuid!() === 0 ? 65_534 : undefined
  await chmod(folder.path, 0o755)
  await chmod(path, 0o555)
  await using reader = storeWorker(['read', path], { uid: nobody })
  expect(await reader.exited).toMatchObject({ code: 0, stderr: '' })
  expect(reader.lines).toEqual(['episodes 4'])
  await chmod(path, 0o755)
})

test('a run of a killed process is read where nothing may be written', async (context) => {
  if (windows) return context.skip(noModes)
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await using owner = storeWorker(['work', path, '4000'])
  await owner.line((line) => line.startsWith('result'))
  owner.process.kill('SIGKILL')
  await owner.exited
  const nobody = process.getuid!() === 0 ? 65_534 : undefined
  await chmod(folder.path, 0o755)
  await chmod(path, 0o555)
  await using reader = storeWorker(['read', path], { uid: nobody })
  expect(await reader.exited).toMatchObject({ code: 0, stderr: '' })
  const results = owner.lines.filter((line) => line.startsWith('result')).length
  expect(Number(reader.lines[0]?.split(' ')[1])).toBeGreaterThanOrEqual(results)
  await chmod(path, 0o755)
})

test('a file where the run folder should be is named', async () => {
  await using folder = await temporaryFolder()
  await symlink('/dev/null', join(folder.path, 'file'))
  await expect(openRunStore({ path: join(folder.path, 'file', 'run') })).rejects.toMatchObject({
    code: 'STORE_READ_ONLY',
    message: expect.stringContaining(join(folder.path, 'file', 'run')),
  })
})
