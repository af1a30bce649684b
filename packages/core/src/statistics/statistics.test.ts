import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { meanWithInterval, passAtK, wilsonInterval } from './statistics.ts'

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
