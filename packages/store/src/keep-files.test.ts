import { hash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WorkspaceFile } from '@aworld-train/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keepFiles, readFiles } from './keep-files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keep-files-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('keeps equal contents once, under the hashes of the episode, and reads them again', async () => {
  const file = (path: string, text: string) => ({ path, executable: path === 'run', bytes: Buffer.from(text) })
  const named = ({ path, executable, bytes }: WorkspaceFile) => ({ path, executable, bytes: bytes.length, sha256: hash('sha256', bytes) })
  const files = [file('a', 'fig'), file('run', 'fig'), file('b', '')]
  await keepFiles(folder, files.map(named), files)
  await keepFiles(folder, [named(file('c', 'fig'))], [file('c', 'fig')])
  expect(readdirSync(join(folder, 'files'))).toHaveLength(2)
  expect(await readFiles(folder, files.map(named))).toEqual(files)
  const [first] = files.map(named)
  writeFileSync(join(folder, 'files', first!.sha256), 'date')
  await expect(readFiles(folder, [first!])).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  await expect(readFiles(folder, [{ ...first!, sha256: '0'.repeat(64) }])).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
})
