import type { Learner, UpdateMetrics, UpdateRequest } from '@aworld-train/core'
import type { TrainingSample } from '@aworld-train/protocol'
import { expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { updatePolicy } from './update-policy.ts'

/** A learner that keeps what it trains, and whose logprob of any token is -1. */
function keepingLearner() {
  const requests: UpdateRequest[] = []
  const learner = {
    async update(request: UpdateRequest): Promise<UpdateMetrics> {
      requests.push(request)
      return { loss: 0, clipFraction: 0, entropy: 0, kl: 0, trainedTokens: request.samples.length }
    },
    logprobs: async (rows: readonly Int32Array[]) => rows.map((row) => new Float32Array(row.length).fill(-1)),
  } as unknown as Learner
  return { learner, requests }
}

const sample = (sampled: number) =>
  ({
    tokenIds: Int32Array.of(1, 2),
    lossMask: Uint8Array.of(0, 1),
    rolloutLogprobs: Float32Array.of(0, sampled),
  }) as unknown as TrainingSample

it.each([
  { maxStaleness: 0, sampled: [-4, -1], truncatedRatios: null },
  { maxStaleness: 1, sampled: [-1 - Math.LN2, -1], truncatedRatios: 0.5 },
])(
  'trains on ratios of at most 2 in every pass where groups are ahead of their step: $maxStaleness',
  async ({ maxStaleness, ...expected }) => {
    const { learner, requests } = keepingLearner()
    const settings = parseLocalConfig({ training: { maxStaleness, passes: 2, promptsPerUpdate: 1 } }).config.training
    const groups = [[sample(-4)], [sample(-1)]]
    const { truncatedRatios } = await updatePolicy({ learner, groups, settings, learningRate: 1, temperature: 1 })
    expect(truncatedRatios).toBe(expected.truncatedRatios)
    const trained = requests.map(({ samples }) => samples[0]!.rolloutLogprobs[1]!)
    expect(trained).toHaveLength(4)
    for (const [at, logprob] of trained.entries()) expect(logprob).toBeCloseTo(expected.sampled[at % 2]!, 6)
  },
)
