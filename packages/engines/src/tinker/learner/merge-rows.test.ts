import { maskedTokens, ppoClipLoss, type TrainingSample } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type MergedRow, mergeRows, type SampleTerms } from './merge-rows.ts'

const ids = [
  [3, 1, 2, 0, 1],
  [3, 1, 2, 0],
  [0, 1, 2, 3, 1],
]

interface Row {
  readonly tokenIds: readonly number[]
  readonly lossMask: readonly number[]
  readonly old: readonly number[]
  readonly factors: readonly number[]
}

/** Rows of few ids, with masks, factors of both signs and logprobs that are sometimes equal. */
const batches = fc.array(
  fc.constantFrom(...ids).chain((tokenIds): fc.Arbitrary<Row> => {
    const perToken = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: tokenIds.length, maxLength: tokenIds.length })
    return fc.record({
      tokenIds: fc.constant(tokenIds),
      lossMask: perToken(fc.constantFrom(1, 1, 0)).map((mask) => mask.with(0, 0)),
      old: perToken(fc.constantFrom(-1, -1, -2)),
      factors: perToken(fc.constantFrom(1.5, 0.25, 0, -0.5)),
    })
  }),
  { minLength: 1, maxLength: 12 },
)
const toTerms = ({ tokenIds, lossMask, old, factors }: Row, index: number): SampleTerms => ({
  sample: { tokenIds: Int32Array.from(tokenIds), lossMask: Uint8Array.from(lossMask) } as unknown as TrainingSample,
  index,
  factor: (at) => factors[at]!,
  old: (at) => old[at]!,
})
const merge = (rows: readonly Row[], merging: Parameters<typeof mergeRows>[1]) => mergeRows(rows.map(toTerms), merging)

/** A loss of rows in which every token has the same logprob in all rows with the same prefix. */
function lossOf(rows: readonly (Row | MergedRow)[], token: (logprob: number, old: number, factor: number) => number): number {
  let sum = 0
  for (const { tokenIds, lossMask, old, factors } of rows)
    for (const [at, bit] of lossMask.entries()) if (bit === 1) sum += token(-0.3 * (1 + tokenIds[at]! + at), old[at]!, factors[at]!)
  return sum
}
const losses = {
  linear: (logprob: number, _old: number, factor: number) => -factor * logprob,
  ratio: (logprob: number, old: number, factor: number) => -factor * Math.exp(logprob - old),
  clipped: (logprob: number, old: number, factor: number) => ppoClipLoss(logprob, old, factor, { clipLow: 0.2, clipHigh: 0.28 }),
}

describe('merging rows', () => {
  it.each([
    ['linear', 'all'],
    ['ratio', 'all'],
    ['clipped', 'of one sign'],
    ['clipped', 'none'],
  ] as const)('leaves a %s loss as it is, merging %s', (name, merging) => {
    fc.assert(
      fc.property(batches, (rows) => {
        const merged = merge(rows, merging)
        expect(lossOf(merged, losses[name])).toBeCloseTo(lossOf(rows, losses[name]), 9)
        expect(merged.flatMap(({ members }) => members).toSorted((a, b) => a - b)).toEqual([...rows.keys()])
        for (const { members, tokenIds } of merged)
          for (const member of members) expect(rows[member]!.tokenIds.slice(0, tokenIds.length)).toEqual([...tokenIds])
      }),
    )
  })

  it('leaves one row of equal ids, and two where their factors have both signs under a clip', () => {
    fc.assert(
      fc.property(batches, fc.boolean(), (rows, clips) => {
        const uniform = rows.map((row) => ({
          ...row,
          lossMask: row.tokenIds.map((_, at) => Number(at > 0)),
          old: row.tokenIds.map(() => -1),
          factors: row.tokenIds.map(() => row.factors[1]! || 1),
        }))
        const distinct = new Set(uniform.map(({ tokenIds, factors }) => `${clips ? Math.sign(factors[1]!) : ''} ${tokenIds}`))
        expect(merge(uniform, clips ? 'of one sign' : 'all')).toHaveLength(distinct.size)
      }),
    )
  })

  it('reads what follows the last trained token of no row', () => {
    const row = { tokenIds: [1, 2, 3, 4], lossMask: [0, 1, 1, 0], old: [0, 0, 0, 0], factors: [1, 1, 1, 1] }
    const merged = merge([row, { ...row, tokenIds: [1, 2, 3, 5] }], 'all')
    expect(merged.map(({ tokenIds, members }) => [[...tokenIds], members])).toEqual([
      [
        [1, 2, 3],
        [0, 1],
      ],
    ])
    expect([...merged[0]!.factors]).toEqual([0, 2, 2])
    expect(maskedTokens(merged[0]!)).toBe(2)
  })

  it.each([Number.NaN, 1e300])('leaves a factor of %s with the sample whose it is', (value) => {
    const row = { tokenIds: [1, 2], lossMask: [0, 1], old: [0, 0], factors: [0, 1] }
    const merged = merge([row, { ...row, factors: [0, value] }, row], 'all')
    expect(merged.map(({ members }) => members)).toEqual([[0, 2], [1]])
  })
})
