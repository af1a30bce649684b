import type { TextTokenizer } from './tokenizer.ts'

/** A piece of decoded text; a special token is a piece of its own. */
export interface TextPiece {
  readonly text: string
  readonly special: boolean
  /** It is a token at which the engine ends a completion. */
  readonly stop: boolean
}

/** Decodes ids as they come: text appears as soon as its bytes are complete. */
export interface TokenText {
  push(ids: ArrayLike<number>): readonly TextPiece[]
  /** What is left, incomplete bytes as U+FFFD. */
  flush(): readonly TextPiece[]
}

/** Special tokens and `stops` come out as special pieces; `before` are the ids in front, which some decoders need for white space. */
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

/** For decoders whose text depends on neighbours: decodes a short window twice and takes the difference. */
function windowDecoder(tokenizer: TextTokenizer, before: Int32Array): Decoder {
  let shown = Array.from(before.subarray(-overlap))
  let pending: number[] = []
  const difference = () => tokenizer.decode([...shown, ...pending], false).slice(tokenizer.decode(shown, false).length)
  const settle = (text: string) => {
    shown = [...shown, ...pending].slice(-overlap)
    pending = []
    return text
  }
  return {
    push(ids, from, to) {
      for (let index = from; index < to; index += 1) pending.push(ids[index]!)
      if (pending.length === 0) return ''
      const text = difference()
      return text.endsWith('\uFFFD') ? '' : settle(text)
    },
    flush: () => (pending.length === 0 ? '' : settle(difference())),
  }
}
