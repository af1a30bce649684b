import { byteAlphabet } from './byte-alphabet.ts'

export interface AddedToken {
  readonly id: number
  readonly content: string
  readonly single_word: false
  readonly lstrip: false
  readonly rstrip: false
  readonly normalized: false
  readonly special: boolean
}

/** The part of Hugging Face's tokenizer.json that a byte-level BPE uses. */
export interface TokenizerJson {
  readonly version: '1.0'
  readonly truncation: null
  readonly padding: null
  readonly added_tokens: readonly AddedToken[]
  readonly normalizer: null
  readonly pre_tokenizer: ByteLevel | { readonly type: 'Sequence'; readonly pretokenizers: readonly [Split, ByteLevel] }
  readonly post_processor: null
  readonly decoder: ByteLevel
  readonly model: {
    readonly type: 'BPE'
    readonly dropout: null
    readonly unk_token: null
    readonly continuing_subword_prefix: null
    readonly end_of_word_suffix: null
    readonly fuse_unk: false
    readonly byte_fallback: false
    readonly ignore_merges: false
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: readonly (readonly [string, string])[]
  }
}

interface ByteLevel {
  readonly type: 'ByteLevel'
  readonly add_prefix_space: false
  readonly trim_offsets: false
  readonly use_regex: false
}

interface Split {
  readonly type: 'Split'
  readonly pattern: { readonly Regex: string }
  readonly behavior: 'Isolated'
  readonly invert: false
}

/**
 * Words for merging: letters, digits or signs with the space before them, and runs of white space. It is GPT-2's pattern, but with white
 * space listed, because `\s` holds U+0085 in one of Hugging Face's two implementations and U+FEFF in the other.
 */
export const wordPattern = ' ?\\p{L}+| ?\\p{N}+| ?[^ \\t\\r\\n\\p{L}\\p{N}]+|[ \\t\\r\\n]+(?![^ \\t\\r\\n])|[ \\t\\r\\n]+'

export interface TokenizerParts {
  /** Byte-level tokens by id. The 256 single bytes come first. */
  readonly vocabulary: readonly string[]
  readonly merges: readonly (readonly [string, string])[]
  readonly addedTokens: readonly { readonly content: string; readonly special: boolean }[]
  /** Whether text is split into words by `wordPattern` before merging. */
  readonly splitWords: boolean
}

/** The tokenizer.json of a byte-level BPE. Added tokens take the ids after the vocabulary, in order. */
export function toTokenizerJson({ vocabulary, merges, addedTokens, splitWords }: TokenizerParts): TokenizerJson {
  const byteLevel: ByteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false }
  const split: Split = { type: 'Split', pattern: { Regex: wordPattern }, behavior: 'Isolated', invert: false }
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: addedTokens.map(({ content, special }, index) => ({
      id: vocabulary.length + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special,
    })),
    normalizer: null,
    pre_tokenizer: splitWords ? { type: 'Sequence', pretokenizers: [split, byteLevel] } : byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges,
    },
  }
}

/** The tokenizer_config.json by which transformers loads the tokenizer; `endToken` ends a turn. */
export function toTokenizerConfig(endToken: string | null, padToken: string | null, contextLength: number): Record<string, unknown> {
  return {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false,
    model_max_length: contextLength,
    bos_token: null,
    eos_token: endToken,
    pad_token: padToken,
    unk_token: null,
  }
}

/** Number of ids that a tokenizer can give: one more than the highest. */
export function tokenizerSize(tokenizer: TokenizerJson): number {
  const highest = Math.max(-1, ...Object.values(tokenizer.model.vocab), ...tokenizer.added_tokens.map((token) => token.id))
  return highest + 1
}

/** Id of an added token; `undefined` if there is none of that text. */
export function addedTokenId(tokenizer: TokenizerJson, content: string): number | undefined {
  return tokenizer.added_tokens.find((token) => token.content === content)?.id
}

/** The bytes of each id in a byte-level vocabulary, by id. An id without token has none. */
export function tokenBytes(tokenizer: Pick<TokenizerJson, 'added_tokens' | 'model'>): Uint8Array[] {
  const byteOf = new Map(byteAlphabet().map((character, byte) => [character, byte]))
  const encoder = new TextEncoder()
  const bytes: Uint8Array[] = []
  for (const [token, id] of Object.entries(tokenizer.model.vocab)) {
    const values = Array.from(token, (character) => byteOf.get(character))
    bytes[id] = values.includes(undefined) ? encoder.encode(token) : Uint8Array.from(values as number[])
  }
  for (const { id, content } of tokenizer.added_tokens) bytes[id] = encoder.encode(content)
  return Array.from(bytes, (piece) => piece ?? new Uint8Array(0))
}
