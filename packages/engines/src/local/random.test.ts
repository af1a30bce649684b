import { describe, expect, it } from 'vitest'
import { normal, streamOf, uniform } from './random.ts'

describe('the counter-based generator', () => {
  it('is a function of its arguments: these numbers never change', () => {
    const [high, low] = streamOf(['task', 7, 'a', 0])
    expect([high, low, uniform(high, low, 0), uniform(high, low, 1)]).toMatchInlineSnapshot(`
      [
        2098617376,
        3183813194,
        0.1829791881609708,
        0.09818008192814887,
      ]
    `)
  })

  it('is uniform over counters and over streams', () => {
    const [high, low] = streamOf(['x'])
    const overCounters = Array.from({ length: 64_000 }, (_, i) => uniform(high, low, i))
    const overStreams = Array.from({ length: 64_000 }, (_, i) => uniform(...streamOf(['task', i, 0]), 0))
    for (const values of [overCounters, overStreams]) {
      const bins = new Array<number>(64).fill(0)
      for (const value of values) bins[Math.floor(value * 64)]!++
      const chi = bins.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)
      // 63 degrees of freedom: mean 63, 5 standard deviations above.
      expect(chi).toBeLessThan(63 + 5 * Math.sqrt(126))
      const lag = values.slice(1).reduce((sum, value, i) => sum + (value - 0.5) * (values[i]! - 0.5), 0) / values.length
      expect(Math.abs(lag)).toBeLessThan(5 / 12 / Math.sqrt(values.length))
    }
  })

  it('tells apart parts that read the same when joined', () => {
    const streams = [['ab', 'c'], ['a', 'bc'], ['abc'], ['a', 'b', 'c'], [1, 2], ['1', 2], [12], []].map((parts) => streamOf(parts).join())
    expect(new Set(streams).size).toBe(streams.length)
  })

  it('gives normal numbers of mean 0 and variance 1', () => {
    const [high, low] = streamOf(['normal'])
    const values = Array.from({ length: 50_000 }, (_, i) => normal(high, low, i))
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length
    const variance = values.reduce((sum, x) => sum + x * x, 0) / values.length
    expect(Math.abs(mean)).toBeLessThan(0.02)
    expect(Math.abs(variance - 1)).toBeLessThan(0.03)
    expect(values.every(Number.isFinite)).toBe(true)
  })
})
