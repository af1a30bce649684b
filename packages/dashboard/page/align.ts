import type { Token } from './token-stream.ts'

/** Prompts or completions of two turns that stand beside each other. */
interface Line {
  readonly turn: number
  readonly isSampled: boolean
  readonly isSame: boolean
  readonly left: readonly Token[]
  readonly right: readonly Token[]
}
interface Alignment {
  readonly lines: readonly Line[]
  /** Tokens that have an equal on the other side. */
  readonly equal: ReadonlySet<Token>
}

/** Most cells of the table that compares two stretches of tokens. More would take longer than a person waits. */
const mostCells = 4_000_000

/** Number of tokens that two rollouts have in common before they part. */
export function sharedPrefix(a: readonly Token[], b: readonly Token[]): number {
  let length = 0
  while (length < a.length && length < b.length && a[length]!.id === b[length]!.id) length++
  return length
}

/** Aligns turn with turn, prompt with prompt and completion with completion; within each, by the longest common subsequence of ids. */
export function align(a: readonly Token[], b: readonly Token[]): Alignment {
  const equal = new Set<Token>()
  const [left, right] = [stretches(a), stretches(b)]
  const lines = Array.from({ length: Math.max(left.length, right.length) }, (_, index): Line => {
    const [l, r] = [left[index] ?? [], right[index] ?? []]
    for (const { i, j, length } of common(l, r)) {
      // A single equal token amid others is an accident, unless it begins or ends both sides.
      if (length > 1 || (i === 0 && j === 0) || (i + 1 === l.length && j + 1 === r.length))
        for (let k = 0; k < length; k++) equal.add(l[i + k]!).add(r[j + k]!)
    }
    const isSame = l.length === r.length && l.every((token) => equal.has(token))
    return { turn: index >> 1, isSampled: index % 2 === 1, isSame, left: l, right: r }
  })
  return { lines: lines.filter(({ left: l, right: r }) => l.length + r.length > 0), equal }
}

/** Prompts and completions of the turns alternately, with prompts at even places. */
function stretches(tokens: readonly Token[]): Token[][] {
  const list: Token[][] = []
  for (const token of tokens) {
    const place = 2 * token.turn + (token.origin === 'sampled' ? 1 : 0)
    while (list.length <= place) list.push([])
    list[place]!.push(token)
  }
  return list
}

interface Stretch {
  readonly i: number
  readonly j: number
  length: number
}

function common(a: readonly Token[], b: readonly Token[]): Stretch[] {
  const prefix = sharedPrefix(a, b)
  let suffix = 0
  while (suffix < a.length - prefix && suffix < b.length - prefix && a[a.length - 1 - suffix]!.id === b[b.length - 1 - suffix]!.id) suffix++
  const stretches: Stretch[] = prefix > 0 ? [{ i: 0, j: 0, length: prefix }] : []
  const [rows, columns] = [a.length - prefix - suffix, b.length - prefix - suffix]
  if (rows * columns <= mostCells) stretches.push(...subsequence(a.slice(prefix, prefix + rows), b.slice(prefix, prefix + columns), prefix))
  if (suffix > 0) stretches.push({ i: a.length - suffix, j: b.length - suffix, length: suffix })
  return stretches
}

/** The longest common subsequence, by its table of lengths. Places are counted from `offset`. */
function subsequence(a: readonly Token[], b: readonly Token[], offset: number): Stretch[] {
  const width = b.length + 1
  const table = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const [both, down, across] = [table[(i + 1) * width + j + 1]!, table[(i + 1) * width + j]!, table[i * width + j + 1]!]
      table[i * width + j] = a[i]!.id === b[j]!.id ? both + 1 : Math.max(down, across)
    }
  }
  const stretches: Stretch[] = []
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i]!.id === b[j]!.id) {
      const last = stretches.at(-1)
      if (last && last.i + last.length === i + offset && last.j + last.length === j + offset) last.length++
      else stretches.push({ i: i + offset, j: j + offset, length: 1 })
      i++
      j++
    } else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++
    else j++
  }
  return stretches
}
