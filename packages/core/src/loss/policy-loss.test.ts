import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aggregateLoss, isClipped, k3Divergence, ppoClipGradient, ppoClipLoss } from './policy-loss.ts'

const range = { clipLow: 0.2, clipHigh: 0.28 }
const logprob = fc.double({ min: -5, max: 0, noNaN: true })
const advantage = fc.double({ min: -3, max: 3, noNaN: true })

describe('PPO-clip', () => {
  it.each([
    [0, 0, 1, -1],
    [Math.log(1.2), 0, 1, -1.2],
    [Math.log(2), 0, 1, -1.28],
    [Math.log(0.5), 0, 1, -0.5],
    [Math.log(0.5), 0, -1, 0.8],
    [Math.log(2), 0, -1, 2],
  ])('logprob %f, old %f, advantage %f', (now, old, each, loss) => {
    expect(ppoClipLoss(now, old, each, range)).toBeCloseTo(loss, 12)
  })

  it('has the gradient of finite differences', () => {
    fc.assert(
      fc.property(logprob, logprob, advantage, (now, old, each) => {
        const h = 1e-6
        fc.pre(isClipped(now - h, old, each, range) === isClipped(now + h, old, each, range))
        const difference = (ppoClipLoss(now + h, old, each, range) - ppoClipLoss(now - h, old, each, range)) / (2 * h)
        const exact = ppoClipGradient(now, old, each, range)
        expect(Math.abs(difference - exact)).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(exact)) * 100)
      }),
    )
  })
})

describe('k3', () => {
  it('is 0 for equal logprobs, never negative, and its mean is the KL divergence', () => {
    fc.assert(
      fc.property(logprob, logprob, (now, reference) => {
        expect(k3Divergence(now, reference)).toBeGreaterThanOrEqual(-1e-13)
      }),
    )
    expect(k3Divergence(-1, -1)).toBe(0)
    const policy = [0.5, 0.3, 0.2]
    const reference = [0.2, 0.2, 0.6]
    const exact = policy.reduce((sum, p, i) => sum + p * Math.log(p / reference[i]!), 0)
    const mean = policy.reduce((sum, p, i) => sum + p * k3Divergence(Math.log(p), Math.log(reference[i]!)), 0)
    expect(mean).toBeCloseTo(exact, 12)
  })
})

describe('aggregateLoss', () => {
  it('weighs tokens, or rows, and skips rows without tokens', () => {
    const losses = [
      [9, 1, 2, 3],
      [9, 5],
      [9, 9],
    ]
    const masks = [
      [0, 1, 1, 1],
      [0, 1],
      [0, 0],
    ]
    expect(aggregateLoss(losses, masks, 'token-mean')).toBe(11 / 4)
    expect(aggregateLoss(losses, masks, 'sequence-mean')).toBe((2 + 5) / 2)
    expect(aggregateLoss(losses, [[0], [0], [0]], 'token-mean')).toBe(0)
  })
})
