import { expect, test } from 'vitest'
import { chooseFiles, type FileEntry } from './choose-files.ts'

const entry = (path: string, kind: FileEntry['kind'] = 'file', bytes = 1): FileEntry => ({ path, kind, bytes, executable: false })
const paths = (entries: readonly FileEntry[], ...patterns: string[]) => chooseFiles(entries, patterns).map(({ path }) => path)

test('takes the files that fit a pattern, in order', () => {
  const entries = [entry('out', 'folder'), entry('out/b.py'), entry('out/a/c.py'), entry('out/a', 'folder'), entry('note.txt')]
  expect(paths(entries, 'out/**')).toEqual(['out/a/c.py', 'out/b.py'])
  expect(paths(entries, './out/*.py', 'note.txt')).toEqual(['note.txt', 'out/b.py'])
  expect(paths(entries, '**/*.py')).toEqual(['out/a/c.py', 'out/b.py'])
  expect(paths(entries, 'other/**')).toEqual([])
})

test.each([
  ['a link', [entry('out/passwd', 'link')], '"out/passwd" is a link'],
  ['a pipe', [entry('out/pipe', 'pipe')], '"out/pipe" is a pipe'],
  ['a link for the folder', [entry('out', 'link')], '"out" is a link'],
  ['10,000 files', Array.from({ length: 10_000 }, (_, index) => entry(`out/${index}`)), 'more than 64 files'],
  ['too many bytes', [entry('out/a', 'file', 20 * 2 ** 20), entry('out/b')], 'more than 20971520 bytes'],
])('refuses %s', (_, entries, message) => {
  expect(() => chooseFiles(entries, ['out/**'])).toThrow(
    expect.objectContaining({ code: 'FILES_REFUSED', message: expect.stringContaining(message) }),
  )
})

test('a link elsewhere is no problem', () => {
  expect(paths([entry('latest', 'link'), entry('out/a')], 'out/**')).toEqual(['out/a'])
})
