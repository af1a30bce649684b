import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { never, request, startTinyEngine } from '../testing/tiny-model.ts'
import { drawTruncated } from './draw-truncated.ts'

describe('drawing a token', () => {
  it('follows the distribution it reports', async () => {
    await using local = await startTinyEngine({ maxRows: 64 })
    const draws = 4_000
    const counts = new Map<number, { count: number; logprob: number }>()
    const results = await Promise.all(
      Array.from({ length: draws }, (_, i) => local.engine.generate(request({ task: `draw-${i}`, maxTokens: 1, temperature: 0.4 }), never)),
    )
    for (const { tokenIds, logprobs } of results) {
      const seen = counts.get(tokenIds[0]!) ?? { count: 0, logprob: logprobs[0]! }
      expect(logprobs[0]).toBe(seen.logprob)
      counts.set(tokenIds[0]!, { ...seen, count: seen.count + 1 })
    }
    // The seeds are fixed, so the result is not a matter of luck. 4 standard deviations for every token show that the draws are unbiased.
    for (const { count, logprob } of counts.values()) {
      const expected = draws * Math.exp(logprob)
      expect(Math.abs(count - expected)).toBeLessThan(4 * Math.sqrt(expected) + 4)
    }
    expect(counts.size).toBeGreaterThan(20)
  })

  it('takes the most likely token at temperature 0, with its logprob of the bare logits', async () => {
    await using local = await startTinyEngine()
    const greedy = await local.engine.generate(request({ temperature: 0 }), never)
    const candidates = await Promise.all(
      Array.from({ length: 200 }, (_, i) => local.engine.generate(request({ task: `c${i}`, maxTokens: 1 }), never)),
    )
    for (const { logprobs } of candidates) expect(logprobs[0]).toBeLessThanOrEqual(greedy.logprobs[0]!)
    const best = candidates.find(({ tokenIds }) => tokenIds[0] === greedy.tokenIds[0])
    expect(best?.logprobs[0]).toBe(greedy.logprobs[0])
  })

  it('with top-k 1 draws what greedy takes, and reports the logprob before truncation', async () => {
    await using local = await startTinyEngine()
    const greedy = await local.engine.generate(request({ temperature: 0 }), never)
    const one = await local.engine.generate(request({ topK: 1, temperature: 1 }), never)
    expect(one.tokenIds).toEqual(greedy.tokenIds)
    expect(one.logprobs).toEqual(greedy.logprobs)
    const tiny = await local.engine.generate(request({ topP: 1e-9, temperature: 1 }), never)
    expect(tiny.tokenIds).toEqual(greedy.tokenIds)
  })
})

describe('truncation', () => {
  const distribution = fc.array(fc.float({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 }).map((values) => {
    values[0] = Math.max(values[0]!, 0.5)
    return Float32Array.from(values)
  })
  const options = fc.record({ topK: fc.integer({ min: 0, max: 50 }), topP: fc.double({ min: 0.01, max: 1, noNaN: true }) })
  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

  it('draws from the topK largest, within the smallest set that holds topP of them', () => {
    fc.assert(
      fc.property(distribution, options, unit, (weights, { topK, topP }, u) => {
        const id = drawTruncated(weights, { topK, topP }, u)
        const ranked = [...weights.keys()].sort((a, b) => weights[b]! - weights[a]! || a - b)
        const rank = ranked.indexOf(id)
        const kept = topK > 0 ? ranked.slice(0, topK) : ranked
        expect(rank).toBeLessThan(kept.length)
        const total = kept.reduce((sum, other) => sum + weights[other]!, 0)
        const before = ranked.slice(0, rank).reduce((sum, other) => sum + weights[other]!, 0)
        // All tokens before this one hold less than topP together, or it would not have been kept.
        expect(before).toBeLessThan(topP * total + 1e-9)
      }),
    )
  })

  it('reaches every token of the set as the uniform number grows, in order of weight', () => {
    const weights = Float32Array.of(0.125, 0.5, 0.125, 0.25)
    const at = (u: number): number => drawTruncated(weights, { topK: 3, topP: 1 }, u)
    expect([0, 0.57, 0.58, 0.85, 0.86, 0.99].map(at)).toEqual([1, 1, 3, 3, 0, 0])
    expect(drawTruncated(weights, { topK: 0, topP: 0.5 }, 0.999)).toBe(1)
    expect(drawTruncated(weights, { topK: 0, topP: 0.51 }, 0.999)).toBe(3)
  })
})
