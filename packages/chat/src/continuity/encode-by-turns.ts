import type { TextTokenizer } from '../tokenizer.ts'

/** With more new text than this the whole is encoded at once, which a worker can do. */
const mostNewCharacters = 16_384

/**
 * Ids of a text of several turns. It is encoded turn by turn, each in the context of the stop token before it as suffixes are,
 * so that a branch costs what is new in it.
 */
export function encodeByTurns(text: string, tokenizer: TextTokenizer, stops: ReadonlyMap<number, string>): Int32Array {
  const turns = splitBehindStops(text, stops)
  let unknown = 0
  for (const { text: turn } of turns) if (!tokenizer.remembers(turn)) unknown += turn.length
  if (turns.length < 3 || unknown > mostNewCharacters) return tokenizer.encode(text).slice()
  const encoded = turns.map((turn) => ({ ids: tokenizer.encode(turn.text), stop: turn.stop }))
  // A tokenizer that reads a stop token otherwise in front of some text has to see the whole.
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
  /** Up to and with the next stop token; it begins with the stop token before it, whose id is `stop`. */
  readonly text: string
  readonly stop: number | null
}

function splitBehindStops(text: string, stops: ReadonlyMap<number, string>): TurnText[] {
  if (stops.size === 0) return [{ text, stop: null }]
  const idOf = new Map([...stops].map(([id, stop]) => [stop, id]))
  const longestFirst = [...idOf.keys()].sort((a, b) => b.length - a.length).map(escaped)
  const turns: TurnText[] = []
  let start = 0
  let end = 0
  let before: number | null = null
  for (const { 0: stop, index } of text.matchAll(new RegExp(longestFirst.join('|'), 'g'))) {
    end = index + stop.length
    turns.push({ text: text.slice(start, end), stop: before })
    start = index
    before = idOf.get(stop) ?? null
  }
  if (end < text.length) turns.push({ text: text.slice(start), stop: before })
  return turns
}
