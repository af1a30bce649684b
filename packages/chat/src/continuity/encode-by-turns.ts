import type { TextTokenizer } from '../tokenizer.ts'

/**
 * With more new characters than this, the whole text is encoded at once, because its turns may be many and small, and each costs a look-up.
 */
const mostNewCharacters = 16_384

/**
 * Encodes a text of several turns. Like suffixes, each turn is encoded in the context of the stop token before it, so that a
 * branch costs only its new text.
 */
export function encodeByTurns(text: string, tokenizer: TextTokenizer, stops: ReadonlyMap<number, string>): Int32Array {
  const turns: TurnText[] = []
  let unknown = 0
  for (const turn of splitBehindStops(text, stops)) {
    turns.push(turn)
    if (!tokenizer.remembers(turn.text)) unknown += turn.text.length
    if (unknown > mostNewCharacters) return tokenizer.encode(text).slice()
  }
  if (turns.length < 3) return tokenizer.encode(text).slice()
  const ids = tokenizer.encodeAll(turns.map((turn) => turn.text))
  const encoded = turns.map(({ stop }, index) => ({ ids: ids[index]!, stop }))
  // A tokenizer may read a stop token differently before some text. Such a text is encoded whole.
  if (encoded.some(({ ids, stop }) => stop !== null && ids[0] !== stop)) return tokenizer.encode(text).slice()
  const whole = new Int32Array(encoded.reduce((sum, { ids, stop }) => sum + ids.length - (stop === null ? 0 : 1), 0))
  let at = 0
  for (const { ids, stop } of encoded) {
    const added = stop === null ? ids : ids.subarray(1)
    whole.set(added, at)
    at += added.length
  }
  return whole
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

interface TurnText {
  /** A piece that begins with the stop token before it, of id `stop`, and ends with the next stop token. */
  readonly text: string
  readonly stop: number | null
}

function* splitBehindStops(text: string, stops: ReadonlyMap<number, string>): Generator<TurnText> {
  const idOf = new Map([...stops].map(([id, stop]) => [stop, id]))
  const longestFirst = [...idOf.keys()].sort((a, b) => b.length - a.length).map(escaped)
  let start = 0
  let end = 0
  let before: number | null = null
  for (const { 0: stop, index } of longestFirst.length === 0 ? [] : text.matchAll(new RegExp(longestFirst.join('|'), 'g'))) {
    end = index + stop.length
    yield { text: text.slice(start, end), stop: before }
    start = index
    before = idOf.get(stop) ?? null
  }
  if (end < text.length) yield { text: text.slice(start), stop: before }
}
