import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileBelow } from './file-below.ts'

test('a file is found below one of the folders alone, whatever its path looks like and wherever its links lead', () => {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'file-below-test-')))
  try {
    const [data, more, data2] = ['data', 'more', 'data2'].map((name) => join(parent, name)) as [string, string, string]
    for (const folder of [join(data, 'deep'), more, data2]) mkdirSync(folder, { recursive: true })
    const inside = join(data, 'deep', 'a.txt')
    for (const file of [inside, join(more, 'b.txt'), join(data2, 'secret'), join(parent, 'secret')]) writeFileSync(file, 'x')
    symlinkSync(inside, join(data, 'link'))
    symlinkSync(join(more, 'b.txt'), join(data, 'to-more'))
    symlinkSync(join(parent, 'secret'), join(data, 'way-out'))
    symlinkSync(parent, join(data, 'folder-out'))
    symlinkSync(data, join(parent, 'alias'))

    for (const path of ['deep/a.txt', './deep/../deep/a.txt', inside]) expect(fileBelow(path, [data])).toBe(inside)
    expect(fileBelow('link', [data])).toBe(join(data, 'link'))
    const aliased = join(parent, 'alias', 'deep', 'a.txt')
    expect([fileBelow(aliased, [data]), fileBelow('deep/a.txt', [join(parent, 'alias')])]).toEqual([aliased, aliased])
    expect([fileBelow('b.txt', [data, more]), fileBelow('to-more', [data, more])]).toEqual([join(more, 'b.txt'), join(data, 'to-more')])
    expect(fileBelow(inside, ['/'])).toBe(inside)

    const refused = [
      '../secret',
      join(parent, 'secret'),
      '../data2/secret',
      'way-out',
      'folder-out/secret',
      'gone',
      'deep',
      '.',
      '',
      'a\0b',
    ]
    expect(refused.map((path) => fileBelow(path, [data, more, join(parent, 'gone')]))).toEqual(refused.map(() => null))
    expect([fileBelow('to-more', [data]), fileBelow(inside, [])]).toEqual([null, null])
  } finally {
    rmSync(parent, { recursive: true, force: true })
  }
})
