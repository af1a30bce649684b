import { describe, expect, it } from 'vitest'
import { byteAlphabet } from './byte-alphabet.ts'

describe('the byte alphabet', () => {
  it('has 256 different characters, and those of GPT-2 where they are known', () => {
    const alphabet = byteAlphabet()
    expect(new Set(alphabet).size).toBe(256)
    expect([0x41, 0x20, 0x0a, 0x00, 0x7f, 0xad, 0xff].map((byte) => alphabet[byte])).toEqual(['A', 'Ġ', 'Ċ', 'Ā', 'ġ', 'Ń', 'ÿ'])
  })
})
