import { createHash } from 'node:crypto'
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers'
import { TextCache } from './text-cache.ts'

const cachedCharacters = 4_000_000

/** The files from which another thread can build the same tokenizer. */
export interface TokenizerSource {
  /** SHA-256 of tokenizer.json. */
  readonly hash: string
  readonly tokenizerText: string
  readonly config: object
}

export interface TextTokenizer {
  readonly source: TokenizerSource
  /** SHA-256 of tokenizer.json. */
  readonly hash: string
  /** Ids of the special tokens, which never appear in delivered text. */
  readonly specialIds: ReadonlySet<number>
  /** Text of one token as a template writes it; `null` for an id outside the vocabulary. */
  tokenText(id: number): string | null
  tokenId(text: string): number | null
  /** Encodes a text. Do not write to the result, because equal texts share it. */
  encode(text: string): Int32Array
  /** Like `encode`, for several texts that are needed together. */
  encodeAll(texts: readonly string[]): readonly Int32Array[]
  /** Whether the ids of `text` are in the cache. */
  remembers(text: string): boolean
  /**
   * Runs `work` with ids from `ready` or from the cache. If `work` needs texts of more than `limit` characters together that neither has,
   * returns the first such texts instead of encoding them.
   */
  withReady<T>(
    ready: ReadonlyMap<string, Int32Array>,
    limit: number,
    work: () => T,
  ): { readonly value: T } | { readonly missing: readonly string[] }
  decode(ids: ArrayLike<number>, skipSpecialTokens: boolean): string
  /** Bytes of one token, for decoders that join bytes; `null` for other decoders. */
  tokenBytes: ((id: number) => Uint8Array) | null
}

interface TokenizerJson {
  readonly decoder?: { readonly type?: string } | null
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special?: boolean }[]
}

/**
 * Creates a tokenizer from the text of tokenizer.json and the object of tokenizer_config.json. Throws the errors of the tokenizer library.
 */
export function createTokenizer(tokenizerText: string, config: object): TextTokenizer {
  const json = JSON.parse(tokenizerText) as TokenizerJson
  const tokenizer = new HuggingFaceTokenizer(json, config)
  const cache = new TextCache<Int32Array>(cachedCharacters)
  const added = json.added_tokens ?? []
  const specialIds = new Set(added.filter((token) => token.special).map((token) => token.id))
  const tokenText = (id: number) => tokenizer.id_to_token(id) ?? null
  const tokenBytes = json.decoder?.type === 'ByteLevel' ? byteTable(tokenText, new Set(added.map((token) => token.id))) : null
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
  const hash = createHash('sha256').update(tokenizerText).digest('hex')
  let request: { readonly ready: ReadonlyMap<string, Int32Array>; readonly limit: number } | null = null
  const compute = (text: string) => Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids)
  const encodeAll = (texts: readonly string[]): Int32Array[] => {
    if (request) {
      const { ready, limit } = request
      const missing = texts.filter((text) => !ready.has(text) && !cache.has(text))
      if (missing.reduce((sum, { length }) => sum + length, 0) > limit) throw new NotReady(missing)
    }
    return texts.map((text) => cache.get(text, (key) => request?.ready.get(key) ?? compute(key)))
  }
  return {
    source: { hash, tokenizerText, config },
    hash,
    specialIds,
    tokenText,
    tokenId: (text) => tokenizer.token_to_id(text) ?? null,
    encode: (text) => encodeAll([text])[0]!,
    encodeAll,
    remembers: (text) => cache.has(text),
    withReady(ready, limit, work) {
      request = { ready, limit }
      try {
        return { value: work() }
      } catch (error) {
        if (error instanceof NotReady) return { missing: error.texts }
        throw error
      } finally {
        request = null
      }
    },
    decode(ids, skipSpecialTokens) {
      const kept = skipSpecialTokens ? Array.from(ids).filter((id) => !specialIds.has(id)) : Array.from(ids)
      if (kept.length === 0) return ''
      if (tokenBytes) return utf8.decode(Buffer.concat(kept.map(tokenBytes)))
      return tokenizer.decode(kept, { skip_special_tokens: false, clean_up_tokenization_spaces: false })
    },
    tokenBytes,
  }
}

/** Thrown to end `withReady` early. */
class NotReady extends Error {
  readonly texts: readonly string[]

  constructor(texts: readonly string[]) {
    super('the ids of long texts are not ready')
    this.texts = texts
  }
}

/** Bytes of each token of a byte-level vocabulary. An added token stands for its own text. */
function byteTable(tokenText: (id: number) => string | null, addedIds: ReadonlySet<number>): (id: number) => Uint8Array {
  const byteOf = byteAlphabet()
  const table: Uint8Array[] = []
  return (id) => {
    const cached = table[id]
    if (cached) return cached
    const text = tokenText(id)
    const bytes = text === null ? new Uint8Array() : addedIds.has(id) ? Buffer.from(text) : toBytes(text, byteOf)
    table[id] = bytes
    return bytes
  }
}

function toBytes(text: string, byteOf: ReadonlyMap<string, number>): Uint8Array {
  const bytes: number[] = []
  for (const character of text) {
    const byte = byteOf.get(character)
    if (byte === undefined) return Buffer.from(text)
    bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

/** GPT-2's printable characters for bytes. Printable bytes stand for themselves; the others follow from U+0100 on. */
function byteAlphabet(): ReadonlyMap<string, number> {
  const printable = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
  const alphabet = new Map<string, number>()
  let next = 0x100
  for (let byte = 0; byte < 256; byte += 1) {
    if (printable(byte)) alphabet.set(String.fromCharCode(byte), byte)
    else {
      alphabet.set(String.fromCharCode(next), byte)
      next += 1
    }
  }
  return alphabet
}
