import type { Token } from './token-stream.ts'

/** A line of tokens on screen. They are of one turn, and either all sampled or none. */
export interface StreamLine {
  readonly tokens: readonly Token[]
  readonly isSampled: boolean
  /** Whether it is the first line of its turn, and of its part of the turn. */
  readonly startsTurn: boolean
  readonly startsPart: boolean
  /** Pixels from the top of all lines to its end, and the height of the row of its tokens at that end. */
  readonly bottom: number
  readonly rowHeight: number
}

const rowHeights = { prompt: 24, sampled: 29 }
/** Room above a turn: for a rule, and for its name if that is not beside it. */
const ruleRoom = 12
const nameRoom = 24

/** Breaks tokens into lines that are at most `width` pixels wide. `widthOf` returns the width of a token. */
export function toLines(
  tokens: readonly Token[],
  { width, isNamedAbove }: { width: number; isNamedAbove: boolean },
  widthOf: (token: Token) => number,
): StreamLine[] {
  const lines: (StreamLine & { readonly tokens: Token[] })[] = []
  let used = 0
  let bottom = 0
  for (const token of tokens) {
    const isSampled = token.origin === 'sampled'
    const last = lines.at(-1)
    const startsTurn = last?.tokens[0]?.turn !== token.turn
    const startsPart = startsTurn || last?.isSampled !== isSampled
    const size = widthOf(token)
    if (!last || startsPart || used + size > width) {
      const rowHeight = isSampled ? rowHeights.sampled : rowHeights.prompt
      bottom += rowHeight + (startsTurn && last ? ruleRoom : 0) + (startsTurn && isNamedAbove ? nameRoom : 0)
      lines.push({ tokens: [token], isSampled, startsTurn, startsPart, bottom, rowHeight })
      used = size
    } else {
      last.tokens.push(token)
      used += size
    }
  }
  return lines
}

/** Number of the first line for which `isBehind` is false. Lines are ordered. */
export function firstLine(lines: readonly StreamLine[], isBehind: (line: StreamLine) => boolean): number {
  let [low, high] = [0, lines.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBehind(lines[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}
