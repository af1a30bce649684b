import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plain, rowNames, rowParser, writers } from './rows.test-support.ts'

const runs = 30

/** Parts of a row's text, cut at its marks and at odd places, with other text between them. */
function partsOf(row: string): string[] {
  const written = writers[row]!([
    { name: 'f', arguments: { a: 'b', c: 1 } },
    { name: 'g', arguments: {} },
  ])
  const marked = written.split(/(?=\uE000)|(?<=\uE001)/)
  const texts = marked.flatMap((part) =>
    part.startsWith('\uE000') ? [part, plain(part), plain(part).slice(0, -2)] : [part, ...part.split(/(?<=[\n:,({[\])}"'])/)],
  )
  return [...new Set([...texts, '<think>', '</think>', '<', ' ', '\n', '"', '}', ';', '漢🙂', 'text'])].filter((part) => part !== '')
}

describe.each(rowNames.flatMap((row) => [true, false].map((special) => [row, special] as const)))(
  '%s, markers as tokens: %s',
  (row, special) => {
    test('how the ids arrive makes no difference, and deltas are the message', async () => {
      const parser = await rowParser(row, special)
      const parts = partsOf(row)
      fc.assert(
        fc.property(
          fc.array(fc.constantFrom(...parts, ...parts.slice(0, 3)), { maxLength: 14 }),
          fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
          fc.constantFrom('stop', 'length'),
          fc.constantFrom('open', 'closed', undefined),
          (texts, pieces, unified, thinking) => {
            const options = { unified, ...(thinking && { thinking }) } as const
            const text = texts.join('')
            const whole = parser.parse(text, { ...options, pieces: [100_000] })
            const cut = parser.parse(text, { ...options, pieces })
            expect({ message: cut.message, issues: cut.issues }).toEqual({ message: whole.message, issues: whole.issues })
            const shown = (type: string) => cut.all.flatMap((delta) => (delta.type === type && 'text' in delta ? delta.text : [])).join('')
            expect([shown('content'), shown('reasoning')]).toEqual([cut.message.content ?? '', cut.message.reasoning ?? ''])
            const { toolCalls = [] } = cut.message
            expect(cut.all.flatMap((delta) => (delta.type === 'tool-call' ? delta.call : []))).toEqual(toolCalls)
            for (const call of toolCalls) expect(Object.prototype.toString.call(JSON.parse(call.arguments))).toBe('[object Object]')
            if (toolCalls.length === 0 && !special && !thinking && row !== 'harmony') {
              expect(cut.message.content?.replaceAll(/\s/g, '')).toBe(plain(text).replaceAll(/\s/g, ''))
            }
          },
        ),
        { numRuns: runs },
      )
    })
  },
)
