import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { collectFolder } from './collect-folder.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'collect-folder-'))
  mkdirSync(join(folder, 'out'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('reads the files that fit', async () => {
  writeFileSync(join(folder, 'out/a.txt'), 'fig', { mode: 0o755 })
  writeFileSync(join(folder, 'other.txt'), 'date')
  expect(await collectFolder(folder, ['out/**'])).toEqual([
    { path: 'out/a.txt', executable: process.platform !== 'win32', bytes: Buffer.from('fig') },
  ])
})

test.skipIf(process.platform === 'win32')('reads nothing outside of the folder', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'collect-outside-'))
  onTestFinished(() => rmSync(outside, { recursive: true }))
  writeFileSync(join(outside, 'secret.txt'), 'secret')
  symlinkSync(outside, join(folder, 'out/linked'))
  writeFileSync(join(folder, 'out/own.txt'), 'own')
  // On Windows this would be a path.
  const odd = `out\\..\\..\\${basename(outside)}\\secret.txt`
  writeFileSync(join(folder, odd), 'forged')
  expect((await collectFolder(folder, ['out/**/*.txt', 'out*.txt'])).map(({ path, bytes }) => `${path}: ${bytes}`)).toEqual([
    'out/own.txt: own',
    `${odd}: forged`,
  ])
})

test.skipIf(process.platform === 'win32')('refuses links, pipes and too many files, and reads none', async () => {
  const refused = (message: string) => ({ code: 'FILES_REFUSED', message: expect.stringContaining(message) })
  writeFileSync(join(folder, 'out/a.txt'), 'fig')
  symlinkSync('/etc/passwd', join(folder, 'out/passwd'))
  await expect(collectFolder(folder, ['out/*'])).rejects.toMatchObject(refused('"out/passwd" is a link'))
  rmSync(join(folder, 'out/passwd'))
  execFileSync('mkfifo', [join(folder, 'out/pipe')])
  await expect(collectFolder(folder, ['out/*'])).rejects.toMatchObject(refused('"out/pipe" is a pipe'))
  rmSync(join(folder, 'out/pipe'))
  symlinkSync('/etc', join(folder, 'linked'))
  await expect(collectFolder(folder, ['linked/passwd'])).rejects.toMatchObject(refused('"linked" is a link'))
  for (let index = 0; index < 64; index++) writeFileSync(join(folder, `out/${index}`), '')
  await expect(collectFolder(folder, ['out/*'])).rejects.toMatchObject(refused('more than 64 files'))
})
