import type { Token } from './token-stream.ts'

/** A line of tokens on screen: all of one turn, and all sampled or none. */
interface StreamLine {
  readonly tokens: readonly Token[]
  readonly isSampled: boolean
  /** The first line of its turn, and the first of its part of the turn. */
  readonly startsTurn: boolean
  readonly startsPart: boolean
}

/** Breaks tokens into lines that are at most `width` wide; `widthOf` is what one takes, in the same unit. */
export function toLines(tokens: readonly Token[], width: number, widthOf: (token: Token) => number): StreamLine[] {
  const lines: { tokens: Token[]; isSampled: boolean; startsTurn: boolean; startsPart: boolean }[] = []
  let used = 0
  for (const token of tokens) {
    const isSampled = token.origin === 'sampled'
    const last = lines.at(-1)
    const before = last?.tokens.at(-1)
    const startsTurn = before?.turn !== token.turn
    const startsPart = startsTurn || last?.isSampled !== isSampled
    const size = widthOf(token)
    if (!last || startsPart || used + size > width) {
      lines.push({ tokens: [token], isSampled, startsTurn, startsPart })
      used = size
    } else {
      last.tokens.push(token)
      used += size
    }
  }
  return lines
}
