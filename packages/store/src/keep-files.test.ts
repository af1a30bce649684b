import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keepFiles, readFiles } from './keep-files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keep-files-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const missing = '0'.repeat(64)

test('keeps equal contents once, and reads them again', async () => {
  const file = (path: string, text: string) => ({ path, executable: path === 'run', bytes: Buffer.from(text) })
  await keepFiles(folder, [file('a', 'fig'), file('run', 'fig'), file('b', '')])
  await keepFiles(folder, [file('c', 'fig')])
  const names = readdirSync(join(folder, 'files'))
  expect(names).toHaveLength(2)
  const [empty, sha256] = names.sort((one, other) => Number(one.startsWith('e3b0')) - Number(other.startsWith('e3b0'))).reverse()
  expect(empty).toMatch(/^e3b0c442/)
  const named = (path: string, executable: boolean) => ({ path, executable, bytes: 3, sha256: sha256! })
  expect(await readFiles(folder, [named('a', false), named('run', true)])).toEqual([file('a', 'fig'), file('run', 'fig')])
  writeFileSync(join(folder, 'files', sha256!), 'date')
  await expect(readFiles(folder, [named('a', false)])).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  await expect(readFiles(folder, [{ ...named('a', false), sha256: missing }])).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
})

test('without files there is no folder', async () => {
  await keepFiles(folder, [])
  expect(readdirSync(folder)).toEqual([])
})
