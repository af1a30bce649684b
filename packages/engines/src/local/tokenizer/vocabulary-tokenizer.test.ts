import { TrainError } from '@aworld-train/core'
import { Tokenizer } from '@huggingface/tokenizers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tokenBytes, tokenizerSize } from './tokenizer-json.ts'
import { createVocabularyTokenizer } from './vocabulary-tokenizer.ts'

const specialTokens = ['<|im_start|>', '<|im_end|>']
const pieces = [
  'system\n',
  'lookup',
  'atomic number',
  'What is the ',
  '", "',
  'iron',
  'tin',
  'titanium',
  '10',
  '100',
  '東京',
  '\n{"name": "',
  'H',
  ' ',
]
const json = createVocabularyTokenizer({ specialTokens, pieces })
const tokenizer = new Tokenizer(json, {})
const encode = (text: string): number[] => tokenizer.encode(text, { add_special_tokens: false }).ids
const decode = (ids: number[]): string => (ids.length === 0 ? '' : tokenizer.decode(ids, { clean_up_tokenization_spaces: false }))

describe('a tokenizer of listed pieces', () => {
  it('gives any text back, pieces and special tokens within it', () => {
    const text = fc
      .array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...pieces, ...specialTokens)))
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (input) => {
        const ids = encode(input)
        expect(decode(ids)).toBe(input)
        const bytes = tokenBytes(json)
        expect(Buffer.concat(ids.map((id) => bytes[id]!)).toString('utf8')).toBe(input)
      }),
    )
  })

  it('takes the longest of the leftmost pieces', () => {
    const ids = encode('titanium100')
    expect(ids.map((id) => tokenizer.id_to_token(id))).toEqual(['titanium', '100'])
    expect(encode('tin101').map((id) => tokenizer.id_to_token(id))).toEqual(['tin', '10', '1'])
  })

  it('numbers bytes by value, then special tokens, pieces and reserved tokens up to a multiple of 16', () => {
    expect(encode('A\n')).toEqual([65, 10])
    expect(encode('<|im_start|><|im_end|>system\n')).toEqual([256, 257, 258])
    expect(tokenizerSize(json) % 16).toBe(0)
    expect(tokenBytes(json).every((bytes) => bytes.length > 0)).toBe(true)
  })

  it('has a token for a piece of one byte already', () => {
    expect(encode('H ')).toEqual([72, 32])
  })

  it.each([
    [[''], 'empty'],
    [['iron', 'iron'], 'twice'],
    [['<|im_end|>'], 'twice'],
    [['café'], 'stand for bytes'],
    [['\ud800'], 'surrogate'],
  ])('refuses %j', (bad, reason) => {
    expect(() => createVocabularyTokenizer({ specialTokens, pieces: bad })).toThrow(TrainError)
    expect(() => createVocabularyTokenizer({ specialTokens, pieces: bad })).toThrow(reason)
  })
})
