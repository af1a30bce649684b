import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { differenceOfMeans, meanWithInterval, pairedDifference, passAtK, wilsonInterval } from './statistics.ts'

describe('wilsonInterval', () => {
  it.each([
    // R: prop.test(x, n, correct = FALSE)$conf.int
    [0, 10, 0, 0.2775],
    [8, 10, 0.4902, 0.9433],
    [300, 320, 0.9055, 0.9591],
    [10, 10, 0.7225, 1],
  ])('%i of %i', (successes, trials, low, high) => {
    const interval = wilsonInterval(successes, trials)
    expect(interval[0]).toBeCloseTo(low, 3)
    expect(interval[1]).toBeCloseTo(high, 3)
  })

  it('lies within 0 and 1 around the proportion and narrows with trials', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.double({ min: 0, max: 1, noNaN: true }), (trials, part) => {
        const successes = Math.round(part * trials)
        const [low, high] = wilsonInterval(successes, trials)
        expect(low).toBeGreaterThanOrEqual(0)
        expect(high).toBeLessThanOrEqual(1)
        expect(low).toBeLessThanOrEqual(successes / trials)
        expect(high).toBeGreaterThanOrEqual(successes / trials)
        const [lower, higher] = wilsonInterval(successes * 4, trials * 4)
        expect(higher - lower).toBeLessThan(high - low)
      }),
    )
  })
})

describe('passAtK', () => {
  it('is the part of all choices of k that hold a right one', () => {
    for (let n = 1; n <= 6; n++) {
      for (let right = 0; right <= n; right++) {
        for (let k = 1; k <= n; k++) {
          const choices = subsets(n, k)
          const hits = choices.filter((choice) => choice.some((i) => i < right)).length
          expect(passAtK(n, right, k)).toBeCloseTo(hits / choices.length, 12)
        }
      }
    }
  })

  it('refuses more than there are', () => {
    expect(() => passAtK(3, 1, 4)).toThrow(RangeError)
    expect(() => passAtK(3, 4, 1)).toThrow(RangeError)
  })
})

describe('meanWithInterval', () => {
  it('is Wilson for 0 and 1, normal for values that lie elsewhere', () => {
    expect(meanWithInterval([1, 1, 0, 1])).toEqual({ mean: 0.75, interval: wilsonInterval(3, 4) })
    const { mean, interval } = meanWithInterval([0.5, 1, 1.5])
    expect(mean).toBe(1)
    expect(interval[1] - mean).toBeCloseTo((1.959964 * 0.5) / Math.sqrt(3), 5)
    expect(Number.isNaN(meanWithInterval([]).mean)).toBe(true)
  })

  it('lies in [0, 1] around the mean where all values do', () => {
    expect(meanWithInterval([1, 1, 1, 0.9]).interval[1]).toBeLessThanOrEqual(1)
    expect(meanWithInterval([0.3]).interval).toEqual(wilsonInterval(0.3, 1))
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 }), (values) => {
        const { mean, interval } = meanWithInterval(values)
        const [low, high] = interval
        expect(low).toBeGreaterThanOrEqual(0)
        expect(high).toBeLessThanOrEqual(1)
        expect(low).toBeLessThanOrEqual(mean)
        expect(high).toBeGreaterThanOrEqual(mean)
      }),
    )
  })

  it('is as wide as the normal one in the middle of the range', () => {
    const values = Array.from({ length: 400 }, (_, index) => 0.3 + 0.4 * ((index % 5) / 4))
    const { mean, interval } = meanWithInterval(values)
    const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 399)
    expect(interval[1] - interval[0]).toBeCloseTo((2 * 1.959964 * deviation) / 20, 3)
  })

  it('covers the mean of skewed values about 95 times in 100', () => {
    const draw = randomNumbers(11)
    let covered = 0
    for (let run = 0; run < 2000; run++) {
      const { interval } = meanWithInterval(Array.from({ length: 40 }, () => draw() ** 4))
      if (interval[0] <= 0.2 && interval[1] >= 0.2) covered++
    }
    expect(covered / 2000).toBeGreaterThan(0.92)
    expect(covered / 2000).toBeLessThan(0.98)
  })
})

/** Mulberry32 (public domain, Tommy Ettinger): numbers in [0, 1) from a seed. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

function subsets(n: number, k: number): number[][] {
  return Array.from({ length: 2 ** n }, (_, bits) => Array.from({ length: n }, (_, i) => i).filter((i) => (bits >> i) & 1)).filter(
    (subset) => subset.length === k,
  )
}

describe('differenceOfMeans', () => {
  // Newcombe 1998, "Interval estimation for the difference between independent proportions" (PMID 9595617), table II, method 10.
  it.each([
    [56, 70, 48, 80, 0.0524, 0.3339],
    [9, 10, 3, 10, 0.1705, 0.809],
    [10, 10, 0, 20, 0.6791, 1],
    [10, 10, 0, 10, 0.6075, 1],
  ])('%i of %i less %i of %i', (after, ofAfter, before, ofBefore, low, high) => {
    const proportion = (right: number, count: number) => ({ mean: right / count, interval: wilsonInterval(right, count) })
    const { mean, interval } = differenceOfMeans(proportion(after, ofAfter), proportion(before, ofBefore))
    expect(mean).toBeCloseTo(after / ofAfter - before / ofBefore, 12)
    expect(interval[0]).toBeCloseTo(low, 4)
    expect(interval[1]).toBeCloseTo(high, 4)
  })
})

describe('pairedDifference', () => {
  const rewards = fc.double({ min: -9, max: 9, noNaN: true })

  it('has the interval of the paired differences where the means have normal ones', () => {
    const pairs = fc.array(fc.tuple(rewards, rewards), { minLength: 2, maxLength: 30 })
    fc.assert(
      fc.property(pairs, (drawn) => {
        // Values beyond [0, 1] in both lists, so that neither interval is Wilson's.
        const after = [...drawn.map(([value]) => value), 9.5, -9.5]
        const before = [...drawn.map(([, value]) => value), -9.5, 9.5]
        const differences = meanWithInterval(after.map((value, index) => value - (before[index] as number)))
        const { mean, interval } = pairedDifference(after, before)
        expect(mean).toBeCloseTo(differences.mean, 8)
        expect(interval[0]).toBeCloseTo(differences.interval[0], 6)
        expect(interval[1]).toBeCloseTo(differences.interval[1], 6)
      }),
    )
  })

  it('is narrower than the difference of the means where the pairs agree, and holds 0 where they are the same', () => {
    const before = [0, 0, 0, 0, 1, 1, 1, 1]
    const after = [0, 0, 1, 1, 1, 1, 1, 1]
    const paired = pairedDifference(after, before)
    const apart = differenceOfMeans(meanWithInterval(after), meanWithInterval(before))
    expect(paired.interval[0]).toBeGreaterThan(apart.interval[0])
    const [low, high] = pairedDifference(after, after).interval
    expect([low <= 0, high >= 0]).toEqual([true, true])
  })
})
