import { type TrainingSample, trainedLength } from '@aworld-train/core'

/** The terms of a sample in the loss of a batch: for each trained token a factor, and the logprob that the term compares with. */
export interface SampleTerms {
  readonly sample: TrainingSample
  /** Position of the sample in its batch. */
  readonly index: number
  factor(at: number): number
  old(at: number): number
}

/** Samples of equal ids as one row, whose terms are their sum. Arrays have one number for each token up to the last trained one. */
export interface MergedRow {
  readonly tokenIds: Int32Array
  readonly lossMask: Uint8Array
  readonly old: Float32Array
  readonly factors: Float64Array
  readonly members: number[]
}

/** Equal for rows of equal ids. */
export const rowKey = ({ buffer, byteOffset, byteLength }: Int32Array) => Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

/** The samples of equal ids that become one row. */
export type Merging = 'all' | 'of one sign' | 'none'

/**
 * Merges samples of equal ids. The loss stays the same, except for rounding, where the terms of a token add up by their factors. Terms of
 * `factor * logprob` do, and those of `factor * exp(logprob - old)` with equal `old`. A clipped term, min(ratio A, clip(ratio) A), is A
 * min(ratio, high) for a positive A and A max(ratio, low) for a negative one, so it only adds up to terms of its sign.
 */
export function mergeRows(samples: readonly SampleTerms[], merging: Merging): MergedRow[] {
  const rows: MergedRow[] = []
  const byIds = new Map<string, MergedRow[]>()
  for (const terms of samples) {
    const tokenIds = terms.sample.tokenIds.subarray(0, trainedLength(terms.sample))
    const key = rowKey(tokenIds)
    const equal = byIds.get(key) ?? []
    let row = merging === 'none' ? undefined : equal.find((each) => isAdditive(each, terms, merging))
    if (!row) {
      row = emptyRow(tokenIds)
      rows.push(row)
      byIds.set(key, [...equal, row])
    }
    add(row, terms)
  }
  return rows
}

function emptyRow(tokenIds: Int32Array): MergedRow {
  const { length } = tokenIds
  const [lossMask, old, factors] = [new Uint8Array(length), new Float32Array(length), new Float64Array(length)]
  return { tokenIds, lossMask, old, factors, members: [] }
}

function isAdditive({ lossMask, old, factors }: MergedRow, terms: SampleTerms, merging: Merging): boolean {
  return lossMask.every((bit, at) => {
    if (bit === 0 || terms.sample.lossMask[at] === 0) return true
    const factor = terms.factor(at)
    // A sum beyond 32 bits, or of something that is no number, would hide whose it is.
    if (!Number.isFinite(Math.fround(factors[at]! + factor))) return false
    return old[at] === terms.old(at) && (merging === 'all' || Math.sign(factors[at]!) * Math.sign(factor) >= 0)
  })
}

function add({ lossMask, old, factors, members }: MergedRow, { sample, index, ...terms }: SampleTerms): void {
  members.push(index)
  for (let at = 0; at < lossMask.length; at++) {
    if (sample.lossMask[at] !== 1) continue
    lossMask[at] = 1
    old[at] = terms.old(at)
    factors[at]! += terms.factor(at)
  }
}
