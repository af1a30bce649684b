import { isClipped, k3Divergence, ppoClipGradient, ppoClipLoss } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { likelihoodLoss, policyLoss } from './token-loss.ts'

const logprob = fc.double({ min: -12, max: 0, noNaN: true })

it('the policy loss is that of the exam, with the KL term added', () => {
  fc.assert(
    fc.property(
      fc.record({
        logprob,
        rolloutLogprob: logprob,
        referenceLogprob: fc.option(logprob, { nil: null }),
        advantage: fc.double({ min: -3, max: 3, noNaN: true }),
        clipLow: fc.double({ min: 0, max: 0.5, noNaN: true }),
        clipHigh: fc.double({ min: 0, max: 0.5, noNaN: true }),
        klCoefficient: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      (input) => {
        const { logprob, rolloutLogprob, referenceLogprob, advantage, klCoefficient } = input
        const result = policyLoss(input)
        const kl = referenceLogprob === null ? 0 : k3Divergence(logprob, referenceLogprob)
        const klSlope = referenceLogprob === null ? 0 : 1 - Math.exp(referenceLogprob - logprob)
        const scale = Math.exp(12) * 4
        expect(result.kl).toBeCloseTo(kl, 6)
        expect(Math.abs(result.loss - ppoClipLoss(logprob, rolloutLogprob, advantage, input) - klCoefficient * kl)).toBeLessThan(
          scale * 1e-12,
        )
        const slope = ppoClipGradient(logprob, rolloutLogprob, advantage, input) + klCoefficient * klSlope
        expect(Math.abs(result.logprobGradient - slope)).toBeLessThan(scale * 1e-12)
        expect(result.clipped === 1).toBe(isClipped(logprob, rolloutLogprob, advantage, input))
      },
    ),
    { numRuns: 2000 },
  )
})

it('the likelihood loss falls by one with the logprob', () => {
  expect(likelihoodLoss(-2.5)).toEqual({ loss: 2.5, logprobGradient: -1, clipped: 0, kl: 0 })
})
