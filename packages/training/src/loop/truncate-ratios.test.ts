import type { TrainingSample } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { truncateRatios } from './truncate-ratios.ts'

it('limits the ratio of trained tokens to 2 from above, and leaves the others', () => {
  const sampled = [0, -1, -3, -1, -3]
  const current = Float32Array.of(0, -1.5, -1, -0.4, -1)
  const sample = { lossMask: [0, 1, 1, 1, 0], rolloutLogprobs: Float32Array.from(sampled) } as unknown as TrainingSample
  const { samples, truncated } = truncateRatios([sample], [current])
  const ratios = [...samples[0]!.rolloutLogprobs].map((logprob, at) => Math.exp(current[at]! - logprob))
  expect(truncated).toBe(1)
  expect(ratios.map((ratio) => Number(ratio.toFixed(4)))).toEqual([1, 0.6065, 2, 1.8221, 7.3891])
  expect([...sample.rolloutLogprobs]).toEqual(sampled)
})

it('gives back the very samples that need no change', () => {
  const sample = { lossMask: [0, 1], rolloutLogprobs: Float32Array.of(0, -1) } as unknown as TrainingSample
  expect(truncateRatios([sample], [Float32Array.of(0, -0.99)])).toEqual({ samples: [sample], truncated: 0 })
})
