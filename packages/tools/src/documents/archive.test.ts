import { expect, test } from 'vitest'
import { buildZip } from '../testing/build-zip.ts'
import { archiveLimits, openArchive, toStoredArchive } from './archive.ts'

test('XML parts are inflated, and other files are listed without being opened', () => {
  const { parts, media } = openArchive(
    '"a"',
    buildZip({ 'word/document.xml': '<a/>', 'word/media/image1.png': 'pixels', 'inner.zip': 'PK' }),
  )
  expect([...parts].map(([name, part]) => [name, part.toString()])).toEqual([['word/document.xml', '<a/>']])
  expect(media).toEqual([
    { name: 'inner.zip', bytes: 2 },
    { name: 'word/media/image1.png', bytes: 6 },
  ])
})

test('a stored archive holds the same parts', () => {
  const { parts } = openArchive('"a"', buildZip({ 'a.xml': '<a>ä</a>', 'b/c.rels': '' }))
  const again = openArchive('"a"', toStoredArchive(parts))
  expect(again.parts).toEqual(parts)
})

test.each([
  ['grows 1000 to 1', buildZip({ 'a.xml': Buffer.alloc(50 * 2 ** 20) }), /100 times its size/],
  [
    'says that it is small',
    buildZip({ 'a.xml': Buffer.alloc(2 ** 24) }, (all) => all.map((one) => ({ ...one, bytes: 10 }))),
    /100 times its size/,
  ],
  [
    'claims one entry many times',
    buildZip({ 'a.xml': '<a/>' }, ([one]) => Array.from({ length: 50 }, (_, index) => ({ ...one!, name: `${index}.xml` }))),
    /overlap/,
  ],
  [
    'has too many entries',
    buildZip(Object.fromEntries(Array.from({ length: archiveLimits.entries + 1 }, (_, index) => [`${index}.xml`, '']))),
    /more than 2000 entries/,
  ],
  [
    'claims data behind its end',
    buildZip({ 'a.xml': '<a/>' }, (all) => all.map((one) => ({ ...one, compressedBytes: 2 ** 31 }))),
    /damaged ZIP archive/,
  ],
  [
    'claims an entry behind its end',
    buildZip({ 'a.xml': '<a/>' }, (all) => all.map((one) => ({ ...one, offset: 2 ** 31 }))),
    /damaged ZIP archive/,
  ],
  ['is cut off', buildZip({ 'a.xml': '<a/>' }).subarray(0, 40), /damaged ZIP archive/],
  ['is encrypted', buildZip({ 'a.xml': '<a/>' }, (all) => all.map((one) => ({ ...one, flags: 1 }))), /encrypted with a password/],
  ['declares entities', buildZip({ 'a.xml': '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>' }), /document type/],
  [
    'declares an external entity in UTF-16',
    buildZip({ 'a.xml': Buffer.from('\ufeff<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', 'utf16le') }),
    /document type/,
  ],
])('an archive that %s is refused', (_, bytes, message) => {
  expect(() => openArchive('"bomb.docx"', bytes)).toThrow(message)
})

test('no archive inflates to more than 200 MB', () => {
  // A fiftieth of the bytes does not compress, so each entry stays below 100:1; together they are too large.
  const part = Buffer.alloc(21 * 2 ** 20, 'a')
  for (let index = 0; index < part.length / 50; index += 1) part[index] = Math.imul(index ^ (index >>> 7), 2654435761) >>> 24
  const files = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`${index}.xml`, part]))
  expect(() => openArchive('"big.docx"', buildZip(files))).toThrow(/200 MB/)
})
