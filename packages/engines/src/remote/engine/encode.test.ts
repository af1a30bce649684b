import { describe, expect, test } from 'vitest'
import { toSeed } from './to-seed.ts'
import { toSpans } from './to-spans.ts'

test('seeds are a function of the key alone, and differ', () => {
  const key = { seed: 1, task: 'a', sample: 2, turn: 3 }
  expect(toSeed(key)).toBe(toSeed({ ...key }))
  const others = [
    { ...key, seed: 2 },
    { ...key, task: 'b' },
    { ...key, sample: 3 },
    { ...key, turn: 4 },
    { ...key, sample: 23, turn: 3 },
  ]
  const seeds = new Set([key, ...others].map(toSeed))
  expect(seeds.size).toBe(6)
  for (const seed of seeds) expect(Number.isSafeInteger(seed) && seed >= 0).toBe(true)
})

describe('spans of weight versions', () => {
  const at = (labels: readonly (readonly [string, number])[] | null, ...versions: number[]) =>
    toSpans({ server: 'here', versions, labels: labels?.map(([version, start]) => ({ version, start })) ?? null, initialVersion: 0 })

  test('come from the server where it says', () => {
    expect(at([['3', 0]], 3)).toEqual({ weightVersions: [{ fromToken: 0, version: 3 }] })
    expect(
      at(
        [
          ['3', 0],
          ['4', 9],
        ],
        3,
        4,
      ),
    ).toEqual({
      weightVersions: [
        { fromToken: 0, version: 3 },
        { fromToken: 9, version: 4 },
      ],
    })
    expect(at([['default', 0]], 0)).toEqual({ weightVersions: [{ fromToken: 0, version: 0 }] })
  })

  test('are mixed where it does not say and an update came', () => {
    expect(at(null, 3)).toEqual({ weightVersions: [{ fromToken: 0, version: 3 }] })
    expect(at(null, 3, 4, 5)).toEqual({ weightVersions: [{ fromToken: 0, version: 3 }], mixedVersions: { lowest: 3, highest: 5 } })
    expect(at([], 3, 4)).toMatchObject({ mixedVersions: { lowest: 3, highest: 4 } })
  })

  test.each([
    [[['default', 0]], 3],
    [[['2', 0]], 3],
    [[['4', 0]], 3],
    [
      [
        ['3', 0],
        ['default', 5],
      ],
      3,
    ],
  ] as const)('%j are stale where %d was published', (labels, version) => {
    expect(() => at(labels, version)).toThrow(expect.objectContaining({ code: 'POLICY_STALE_WEIGHTS' }))
  })
})
