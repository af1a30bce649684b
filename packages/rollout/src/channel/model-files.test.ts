import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { filesHash, isFolder, writeModelFiles } from './model-files.ts'

const files = new Map([
  ['tokenizer.json', Buffer.from('{"a":"é"}')],
  ['merges.txt', Buffer.from('')],
  ['config.json', Buffer.from([0, 255, 10])],
])

test('the hash of files is that of the Python bridge, in any order', () => {
  // aworld_train_bridge.shared.files.files_hash of the same files.
  const hash = 'f0916354e2e01cf625c60875e6049cfdba5186aa5a2cd1482b57f46e1ad20fc2'
  expect(filesHash(files)).toBe(hash)
  expect(filesHash(new Map([...files].reverse()))).toBe(hash)
  expect(filesHash(new Map([...files].slice(1)))).not.toBe(hash)
})

test('files that several workers send at once stand in their folder once, whole', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'model-files-'))
  onTestFinished(() => rm(parent, { recursive: true }))
  const folder = join(parent, 'deep', 'hash')
  await Promise.all([1, 2, 3, 4].map(() => writeModelFiles(folder, files)))
  expect(await readdir(join(parent, 'deep'))).toEqual(['hash'])
  expect((await readdir(folder)).sort()).toEqual([...files.keys()].sort())
  expect(await readFile(join(folder, 'config.json'))).toEqual(files.get('config.json'))
  expect([await isFolder(folder), await isFolder(join(folder, 'config.json')), await isFolder(join(parent, 'none'))]).toEqual([
    true,
    false,
    false,
  ])
})
