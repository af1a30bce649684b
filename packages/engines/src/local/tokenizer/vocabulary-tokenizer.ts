import { TrainError } from '@aworld-train/core'
import { byteAlphabet } from './byte-alphabet.ts'
import { type TokenizerJson, toTokenizerJson } from './tokenizer-json.ts'

export interface VocabularyOptions {
  /** Tokens that the rendering of a conversation may write and that text is never taken for, such as `<|im_end|>`. */
  readonly specialTokens: readonly string[]
  /** Texts that are one token each, matched leftmost and longest first. */
  readonly pieces: readonly string[]
  /** The size is filled up to a multiple of this with reserved special tokens. Default 16. */
  readonly padToMultiple?: number | undefined
}

/**
 * A tokenizer of hand-listed pieces over the 256 bytes, so that any text round-trips. Ids: bytes by value, special tokens, pieces, reserved
 * tokens. A piece of a single byte is that byte's token. Throws CONFIG_INVALID for an empty or repeated piece, and for one that Hugging
 * Face would decode to another text.
 */
export function createVocabularyTokenizer({ specialTokens, pieces, padToMultiple = 16 }: VocabularyOptions): TokenizerJson {
  const alphabet = byteAlphabet()
  const inAlphabet = new Set(alphabet)
  const seen = new Set<string>()
  const check = (piece: string): void => {
    const quoted = JSON.stringify(piece)
    if (piece === '') throw invalid('A piece of the vocabulary is empty; leave it out.')
    if (!piece.isWellFormed()) throw invalid(`The piece ${quoted} holds half a surrogate pair; list whole characters.`)
    if (seen.has(piece)) throw invalid(`The piece ${quoted} is listed twice; list it once.`)
    const characters = Array.from(piece)
    if (/[^\x00-\x7f]/.test(piece) && characters.every((character) => inAlphabet.has(character))) {
      throw invalid(
        `The piece ${quoted} consists of characters that stand for bytes and would decode to another text; leave it out, bytes cover it.`,
      )
    }
    seen.add(piece)
  }
  for (const piece of [...specialTokens, ...pieces]) check(piece)
  const added = [
    ...specialTokens.map((content) => ({ content, special: true })),
    ...pieces.filter((piece) => !isSingleByte(piece)).map((content) => ({ content, special: false })),
  ]
  for (let index = 0; (alphabet.length + added.length) % padToMultiple !== 0; index++) {
    const content = `<|reserved_${index}|>`
    if (!seen.has(content)) added.push({ content, special: true })
  }
  return toTokenizerJson({ vocabulary: alphabet, merges: [], addedTokens: added, splitWords: false })
}

const isSingleByte = (piece: string): boolean => piece.length === 1 && piece.charCodeAt(0) < 128

const invalid = (message: string): TrainError => new TrainError('CONFIG_INVALID', message)
