import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { writeShape } from '../template-shapes.test-support.ts'
import { createTokenizer } from '../tokenizer.ts'
import { readTokenizerFiles } from '../tokenizer-files.ts'
import { encodeByTurns } from './encode-by-turns.ts'

const kinds = [{}, { rstrip: true }, { tokenizer: 'metaspace' }] as const

describe.each(kinds)('%j', async (how) => {
  await using folder = await writeShape('chat-ml', how)
  const { tokenizerText, tokenizerConfig } = await readTokenizerFiles(folder.directory)
  const fresh = () => createTokenizer(tokenizerText, tokenizerConfig)
  const reference = fresh()
  const stops = new Map(folder.stopTokenIds.map((id) => [id, reference.tokenText(id)!]))

  test('whatever the text, the ids are those of the whole', () => {
    const part = fc.oneof(
      fc.constantFrom('<|im_end|>', '<|endoftext|>', '<|im_start|>', '\n', ' ', '  tool', '<|im_', ''),
      fc.string({ unit: 'grapheme', maxLength: 6 }),
    )
    const tokenizer = fresh()
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
        const text = parts.join('')
        expect([...encodeByTurns(text, tokenizer, stops)]).toEqual([...reference.encode(text)])
      }),
      { numRuns: 500 },
    )
  })

  test('of a text with a new turn only that turn is encoded', () => {
    const tokenizer = fresh()
    const turn = (index: number) => `\n<|im_start|>user\nturn ${index}<|im_end|>`
    const history = Array.from({ length: 5 }, (_, index) => turn(index)).join('')
    encodeByTurns(history, tokenizer, stops)
    const encoded: string[] = []
    const spied = {
      ...tokenizer,
      encodeAll(texts: readonly string[]) {
        encoded.push(...texts.filter((text) => !tokenizer.remembers(text)))
        return tokenizer.encodeAll(texts)
      },
    }
    encodeByTurns(history + turn(5), spied, stops)
    expect(encoded).toEqual([`<|im_end|>${turn(5)}`])
  })
})
