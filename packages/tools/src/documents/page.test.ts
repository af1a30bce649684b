import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pageOfParts, pageOfText } from './page.ts'

test('pages of a text, read one after the other, are the text, and split no character', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '\n', 'é', '🚀'), maxLength: 200 }),
      fc.integer({ min: 1, max: 50 }),
      (text, limit) => {
        let offset: number | null = 0
        let whole = ''
        while (offset !== null) {
          const page = pageOfText('"a"', text, { offset, limit })
          if (!page.content.isWellFormed()) return false
          whole += page.content
          offset = page.nextOffset
        }
        return whole === text
      },
    ),
  )
})

test('a page ends at the end of a line where one is near', () => {
  expect(pageOfText('"a"', 'first line\nsecond line', { offset: 0, limit: 12 })).toMatchObject({ content: 'first line\n', nextOffset: 11 })
})

test('an offset behind the end says how long the document is', () => {
  expect(() => pageOfText('"a.txt"', 'abc', { offset: 3, limit: 5 })).toThrow(
    'Offset 3 is behind the end of "a.txt", which has 3 characters.',
  )
})

test('parts end at the limit of their number or of their characters, and one part always comes', async () => {
  const read = (offset: number, limit: number, maxCharacters: number) =>
    pageOfParts('"a"', { unit: 'pages', total: 4, part: (index) => 'x'.repeat(10 * (index + 1)) }, { offset, limit, maxCharacters })
  expect(await read(0, 2, 1_000)).toMatchObject({ parts: ['x'.repeat(10), 'x'.repeat(20)], nextOffset: 2, notices: [] })
  expect(await read(1, 9, 45)).toMatchObject({ parts: ['x'.repeat(20)], nextOffset: 2 })
  expect(await read(3, 9, 25)).toMatchObject({
    parts: ['x'.repeat(25)],
    nextOffset: null,
    notices: ['One of the pages is cut: 15 of its 40 characters are left out.'],
  })
})
