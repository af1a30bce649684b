import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTokenText } from './token-text.ts'
import { createTokenizer, type TextTokenizer } from './tokenizer.ts'
import { writeModel } from './write-model.test-support.ts'

async function tokenizerOf(tokenizer: 'byte-level' | 'metaspace'): Promise<TextTokenizer> {
  await using folder = await writeModel({ template: '', special: ['<|end|>'], tokenizer })
  return createTokenizer(await readFile(join(folder.directory, 'tokenizer.json'), 'utf8'), {})
}

function read(tokenizer: TextTokenizer, ids: Int32Array, sizes: readonly number[]): string[] {
  const before = tokenizer.encode('x')
  const decoder = createTokenText(tokenizer, new Set(), before)
  const texts: string[] = []
  let at = 0
  for (let piece = 0; at < ids.length; piece += 1) {
    const size = sizes[piece % sizes.length]!
    texts.push(...decoder.push(ids.subarray(at, at + size)).map(({ text }) => text))
    at += size
  }
  return [...texts, ...decoder.flush().map(({ text }) => text)]
}

describe.each(['byte-level', 'metaspace'] as const)('%s', (kind) => {
  const inContext = (tokenizer: TextTokenizer, text: string) => tokenizer.encode(`x${text}`).slice(tokenizer.encode('x').length)

  test('text comes out as it went in, in any pieces', async () => {
    const tokenizer = await tokenizerOf(kind)
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.oneof(fc.constantFrom('🙂', '漢', 'ü', ' ', 'the', '<|end|>', 'a'), fc.string({ unit: 'grapheme', maxLength: 1 })),
        }),
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 }),
        (text, sizes) => {
          const ids = inContext(tokenizer, text)
          expect(read(tokenizer, ids, sizes).join('')).toBe(tokenizer.decode(tokenizer.encode(`x${text}`), false).slice(1))
        },
      ),
      { numRuns: 300 },
    )
  })

  test('a character that was cut harms none before it', async () => {
    const tokenizer = await tokenizerOf(kind)
    const ids = inContext(tokenizer, '🙂🙂漢🙂')
    for (const sizes of [[1], [2], [5], [100]]) {
      expect(read(tokenizer, ids.subarray(0, -1), sizes).join('')).toBe('🙂🙂漢\uFFFD')
    }
  })

  test('text appears as soon as its bytes are complete', async () => {
    const tokenizer = await tokenizerOf(kind)
    expect(read(tokenizer, inContext(tokenizer, '🙂a🙂'), [1])).toEqual(['🙂', 'a', '🙂'])
  })

  test('bytes that make no character do not pile up', async () => {
    const tokenizer = await tokenizerOf(kind)
    const [first] = inContext(tokenizer, '🙂')
    const ids = Int32Array.from({ length: 200 }, () => first!)
    const texts = read(tokenizer, ids, [1])
    expect(texts.join('')).toBe('\uFFFD'.repeat(200))
    expect(texts.length).toBeGreaterThan(150)
  })
})
