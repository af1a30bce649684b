import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createToolAnswerCutter } from './cut-tool-answers.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
/** A tokenizer with one token for each byte. */
const bytes = {
  encode: (text: string) => Int32Array.from(encoder.encode(text)),
  decode: (ids: Int32Array | readonly number[]) => decoder.decode(Uint8Array.from(ids)),
}
const cutter = (maxTokens: number | null, cut: 'head' | 'tail' | 'middle') => {
  const cutAll = createToolAnswerCutter({ maxTokens, cut }, () => bytes)
  return (content: string) => cutAll([{ role: 'tool', content, toolCallId: 'c' }])[0]!.content!
}
const text = 'abcdefghijklmnopqrstuvwxyz0123456789'.repeat(2)

test.each([
  ['head', '[57 characters left out]\nvwxyz0123456789'],
  ['tail', 'abcdefghijklmno\n[57 characters left out]'],
  ['middle', 'abcdefg\n[58 characters left out]\n3456789'],
] as const)('leaves out the %s and says how much', (cut, expected) => {
  expect(cutter(40, cut)(text)).toBe(expected)
})

test('what is short enough, what other roles say, and everything without a limit stays', () => {
  expect(cutter(text.length, 'middle')(text)).toBe(text)
  expect(cutter(null, 'middle')(text.repeat(1000))).toBe(text.repeat(1000))
  const messages = [
    { role: 'user' as const, content: text },
    { role: 'assistant' as const, content: null },
  ]
  expect(createToolAnswerCutter({ maxTokens: 5, cut: 'head' }, () => bytes)(messages)).toEqual(messages)
})

test('no cut is longer than the limit, ends within a character, or differs from time to time', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 400 }),
      fc.integer({ min: 30, max: 60 }),
      fc.constantFrom('head', 'tail', 'middle'),
      (content, maxTokens, cut) => {
        const cutOne = cutter(maxTokens, cut)
        const made = cutOne(content)
        expect(bytes.encode(made).length).toBeLessThanOrEqual(maxTokens)
        if (!content.includes('\uFFFD')) expect(made).not.toContain('\uFFFD')
        expect(cutOne(content)).toBe(made)
        expect(cutter(maxTokens, cut)(content)).toBe(made)
      },
    ),
  )
})
