/** Median and spread of one measure. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** One measure: ours, and each peer with the ratio ours / peer. */
export interface BenchRow {
  readonly measure: string
  readonly unit: string
  readonly better: 'lower' | 'higher'
  readonly ours: Spread
  readonly peers: Readonly<Record<string, Spread & { readonly ratio: number }>>
  /** Bound of the median: a value, or a multiple of the median of peer `of`. */
  readonly bound?: { readonly atMost: number; readonly of?: string }
}

/** Whether a row keeps its bound; `null` where it has none, or its peer was not measured. */
export function keepsBound({ ours, peers, bound }: BenchRow): boolean | null {
  if (!bound) return null
  if (bound.of === undefined) return ours.median <= bound.atMost
  const peer = peers[bound.of]
  return peer ? peer.ratio <= bound.atMost : null
}

export interface BenchSuite {
  /** `notes` are printed and kept beside the rows. */
  run(args: readonly string[]): Promise<{ readonly rows: readonly BenchRow[]; readonly notes: readonly string[] }>
}

/** Name of the files of a result: a part of a suite does not replace what the whole of it found. Numbers and folders of runs are not in it. */
export const resultName = (suite: string, args: readonly string[]): string =>
  [suite, ...args.filter((arg) => !/^\d+$|[\\/]/.test(arg))].join('-')

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { median, min: sorted[0]!, max: sorted.at(-1)! }
}

export function compare(ours: Spread, peer: Spread): Spread & { ratio: number } {
  return { ...peer, ratio: ours.median / peer.median }
}
