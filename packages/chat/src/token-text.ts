import type { TextTokenizer } from './tokenizer.ts'

/** A piece of decoded text; a special token is a piece of its own. */
export interface TextPiece {
  readonly text: string
  readonly special: boolean
  /** Whether it is a token at which the engine ends a completion. */
  readonly stop: boolean
}

/** Decodes ids as they come. Text appears as soon as its bytes are complete. */
export interface TokenText {
  push(ids: ArrayLike<number>): readonly TextPiece[]
  /** The rest of the text, with incomplete bytes as U+FFFD. */
  flush(): readonly TextPiece[]
}

/**
 * Creates a decoder. Special tokens and `stops` become special pieces. `before` are the ids before the text, which some
 * decoders need for white space.
 */
export function createTokenText(tokenizer: TextTokenizer, stops: ReadonlySet<number>, before: Int32Array): TokenText {
  const { specialIds } = tokenizer
  const decoder = tokenizer.tokenBytes ? byteDecoder(tokenizer.tokenBytes) : windowDecoder(tokenizer, before)
  const plain = (text: string): readonly TextPiece[] => (text === '' ? none : [{ text, special: false, stop: false }])
  return {
    push(ids) {
      let from = 0
      let pieces: TextPiece[] | null = null
      for (let index = 0; index < ids.length; index += 1) {
        const id = ids[index]!
        if (!specialIds.has(id) && !stops.has(id)) continue
        pieces ??= []
        const text = decoder.push(ids, from, index) + decoder.flush()
        if (text !== '') pieces.push({ text, special: false, stop: false })
        pieces.push({ text: tokenizer.tokenText(id) ?? '', special: true, stop: stops.has(id) })
        from = index + 1
      }
      const rest = plain(decoder.push(ids, from, ids.length))
      return pieces === null ? rest : [...pieces, ...rest]
    },
    flush: () => plain(decoder.flush()),
  }
}

const none: readonly TextPiece[] = []

interface Decoder {
  push(ids: ArrayLike<number>, from: number, to: number): string
  flush(): string
}

function byteDecoder(tokenBytes: (id: number) => Uint8Array): Decoder {
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
  return {
    push(ids, from, to) {
      if (to - from === 1) return utf8.decode(tokenBytes(ids[from]!), { stream: true })
      if (from === to) return ''
      const parts: Uint8Array[] = []
      for (let index = from; index < to; index += 1) parts.push(tokenBytes(ids[index]!))
      return utf8.decode(Buffer.concat(parts), { stream: true })
    },
    flush: () => utf8.decode(),
  }
}

const overlap = 6
const longestPending = 16

/**
 * A decoder for tokenizers whose text depends on neighbours: it decodes with a few ids in front and takes the difference. Tokens that are
 * single bytes are decoded on their own, because such a tokenizer gives up a whole run of them if one character is incomplete.
 */
function windowDecoder(tokenizer: TextTokenizer, before: Int32Array): Decoder {
  const byteOf = (id: number): number | null => {
    const text = tokenizer.tokenText(id) ?? ''
    return text.length === 6 && byteText.test(text) ? Number(text.slice(1, -1)) : null
  }
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
  let inBytes = false
  let shown = Array.from(before.subarray(-overlap)).filter((id) => byteOf(id) === null)
  let pending: number[] = []
  const endBytes = () => {
    if (!inBytes) return ''
    inBytes = false
    return utf8.decode()
  }
  const settle = (final: boolean) => {
    if (pending.length === 0) return ''
    const text = tokenizer.decode([...shown, ...pending], false).slice(tokenizer.decode(shown, false).length)
    if (!final && text.endsWith('\uFFFD') && pending.length < longestPending) return ''
    shown = [...shown, ...pending].slice(-overlap)
    pending = []
    return text
  }
  return {
    push(ids, from, to) {
      let text = ''
      for (let index = from; index < to; index += 1) {
        const byte = byteOf(ids[index]!)
        if (byte === null) {
          text += endBytes()
          pending.push(ids[index]!)
        } else {
          text += settle(true) + utf8.decode(Uint8Array.of(byte), { stream: true })
          inBytes = true
        }
      }
      return text + settle(false)
    },
    flush: () => endBytes() + settle(true),
  }
}

const byteText = /^<0x[0-9A-F]{2}>$/
