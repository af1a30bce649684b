import { Tokenizer } from '@huggingface/tokenizers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tokenizerSize } from './tokenizer-json.ts'
import { trainBpe } from './train-bpe.ts'

const texts = [
  'low low low low low lower lower newest newest newest newest newest newest widest widest widest',
  "it's 2026, isn't it?  Größe: 東京 🎉",
]
const options = { vocabularySize: 270, specialTokens: ['<|im_start|>', '<|im_end|>'] }
const decodeOptions = { clean_up_tokenization_spaces: false }

describe('training a byte-level BPE', () => {
  it('merges the most frequent pair first', () => {
    const { model } = trainBpe(texts, options)
    expect(model.merges.slice(0, 4)).toEqual([
      ['e', 's'],
      ['es', 't'],
      ['l', 'o'],
      ['lo', 'w'],
    ])
  })

  it('is deterministic and fills the vocabulary, special tokens last', () => {
    const trained = trainBpe(texts, options)
    expect(trainBpe(texts, options)).toEqual(trained)
    expect(tokenizerSize(trained)).toBe(270)
    expect(trained.added_tokens.map(({ id, content }) => [id, content])).toEqual([
      [268, '<|im_start|>'],
      [269, '<|im_end|>'],
    ])
  })

  it('stops where no pair is frequent enough', () => {
    expect(tokenizerSize(trainBpe(['abab'], { vocabularySize: 1_000, specialTokens: [] }))).toBeLessThan(260)
  })

  it('gives any text back through the published tokenizer', () => {
    const tokenizer = new Tokenizer(trainBpe(texts, options), {})
    const text = fc
      .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...texts, ...options.specialTokens)))
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (input) => {
        const { ids } = tokenizer.encode(input, { add_special_tokens: false })
        expect(ids.length === 0 ? '' : tokenizer.decode(ids, decodeOptions)).toBe(input)
      }),
    )
  })

  it('writes a frequent word as one token', () => {
    const tokenizer = new Tokenizer(trainBpe(texts, { ...options, vocabularySize: 300 }), {})
    expect(tokenizer.encode(' newest', { add_special_tokens: false }).tokens).toEqual(['Ġnewest'])
  })

  it('refuses a vocabulary smaller than the bytes', () => {
    expect(() => trainBpe(texts, { vocabularySize: 257, specialTokens: ['a', 'b'] })).toThrow('use at least 258')
  })
})
