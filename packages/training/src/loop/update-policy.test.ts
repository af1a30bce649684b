import type { Learner, PolicyLoss, TrainingSample, UpdateMetrics, UpdateRequest } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { updatePolicy } from './update-policy.ts'

/** A learner that keeps its training batches and gives every token the logprob -1. */
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

/** A loss that keeps the logprobs that it compares, of each batch. */
function keepingLoss() {
  const batches: number[][][] = []
  const loss: PolicyLoss = (rows) => {
    batches.push(rows.map(({ logprobs, rolloutLogprobs }) => [logprobs[0]!, rolloutLogprobs[0]!]))
    return rows.map(({ logprobs, rolloutLogprobs }, i) => ({
      loss: 0,
      gradient: [Math.exp(logprobs[0]! - rolloutLogprobs[0]!)],
      metrics: { index: batches.length + i },
    }))
  }
  return { loss, batches }
}

const sample = (sampled: number) =>
  ({
    tokenIds: Int32Array.of(1, 2),
    lossMask: Uint8Array.of(0, 1),
    rolloutLogprobs: Float32Array.of(0, sampled),
    advantage: 1,
    provenance: {},
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

it('asks a loss of one’s own once an update, for the groups of that update', async () => {
  const { learner, requests } = keepingLearner()
  const { loss, batches } = keepingLoss()
  const settings = parseLocalConfig({ training: { passes: 2, promptsPerUpdate: 1, entropyCoefficient: 0.1 } }).config.training
  const { metrics } = await updatePolicy({
    learner,
    groups: [[sample(-1), sample(-2)], [sample(-3)]],
    settings,
    loss,
    learningRate: 1,
    temperature: 1,
  })
  const first = [
    [-1, -1],
    [-1, -2],
  ]
  expect(batches).toEqual([first, [[-1, -3]], first, [[-1, -3]]])
  expect(requests.map(({ samples }) => samples.length)).toEqual([2, 1, 2, 1])
  for (const request of requests) expect(request.loss).toMatchObject({ kind: 'linear', entropyCoefficient: 0.1, aggregation: 'token-mean' })
  // The means 1.5, 2, 3.5 and 4 of the four batches.
  expect(metrics['loss/index']).toBe(2.75)
})

it('gives a loss of one’s own ratios of at most 2 where groups are ahead of their step', async () => {
  const { learner, requests } = keepingLearner()
  const { loss } = keepingLoss()
  const settings = parseLocalConfig({ training: { maxStaleness: 1 } }).config.training
  const { truncatedRatios } = await updatePolicy({
    learner,
    groups: [[sample(-4)], [sample(-1)]],
    settings,
    loss,
    learningRate: 1,
    temperature: 1,
  })
  expect(truncatedRatios).toBe(0.5)
  const coefficients = requests.flatMap((request) => (request.loss.kind === 'linear' ? request.loss.coefficients : []))
  expect(coefficients.map((row) => row[1])).toEqual([expect.closeTo(2, 6), 1])
})
