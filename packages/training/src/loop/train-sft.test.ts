import type { TrainingSample } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { trainSft } from './train-sft.ts'

function demonstration(tokens: number[], from: number): TrainingSample {
  return {
    version: 2,
    tokenIds: Int32Array.from(tokens),
    lossMask: Uint8Array.from(tokens, (_, i) => (i >= from ? 1 : 0)),
    rolloutLogprobs: new Float32Array(tokens.length),
    weightVersions: [],
    reward: 0,
    advantage: null,
    group: 'demonstrations',
    agent: 'agent',
    trajectory: 'agent',
    policy: 'bigram',
    provenance: { rollout: 'none', attempt: 0, taskId: 'count', sample: 0, turns: [] },
  }
}

it('learns what is masked in, and nothing else', async () => {
  const { learner } = createBigramPolicy(5)
  const batches = Array.from({ length: 100 }, () => [demonstration([1, 2, 3, 4], 2)])
  const seen: number[] = []
  const result = await trainSft({ learner, batches, steps: 60, learningRate: 2, warmupSteps: 3, onStep: (step) => seen.push(step) })
  expect(result).toMatchObject({ steps: 60, trainedTokens: 120, weightVersion: 1 })
  expect(seen).toHaveLength(60)
  expect(result.losses.at(-1)!).toBeLessThan(result.losses[0]! / 10)
  const [row] = await learner.logprobs([Int32Array.of(1, 2, 3, 4)], 1)
  expect(Math.exp(row![1]!)).toBeCloseTo(0.2, 6)
  expect(Math.exp(row![2]!)).toBeGreaterThan(0.9)
  expect(Math.exp(row![3]!)).toBeGreaterThan(0.9)
})

it('skips batches without masked tokens, ends with the batches, and stops on the signal', async () => {
  const { learner } = createBigramPolicy(5)
  const empty = [demonstration([1, 2], 2)]
  expect(await trainSft({ learner, batches: [empty, [demonstration([1, 2], 1)], empty], steps: 9, learningRate: 1 })).toMatchObject({
    steps: 1,
  })
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(trainSft({ learner, batches: [[demonstration([1, 2], 1)]], steps: 1, learningRate: 1, signal })).rejects.toThrow('stopped')
})
