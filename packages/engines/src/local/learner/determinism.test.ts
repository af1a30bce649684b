import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, randomRows, randomTree, smallModel, toSample } from '../goldens/trainer.ts'

const model = smallModel({ vocabularySize: 301 })
const lengths = [50, 3, 1, 77, 20, 20, 34, 2, 61, 9, 15]

const digest = (values: Float32Array): string => createHash('sha256').update(new Uint8Array(values.buffer)).digest('hex')

async function trainedWeights(options: { threads: number; shards: number; tier: 'plain' | 'relaxed' }): Promise<string> {
  await using trainer = await createTrainer({ model, ...options })
  const next = createNumbers(11)
  for (let step = 0; step < 5; step++) {
    const rows = [...randomRows(next, lengths, model.vocabularySize), ...randomTree(next, 30, 60)]
    await trainer.learner.update({
      samples: rows.map((tokenIds, i) =>
        toSample(
          {
            tokenIds,
            rolloutLogprobs: tokenIds.length > 4 ? new Float32Array(tokenIds.length).fill(-6) : new Float32Array(tokenIds.length),
            advantage: next() - 0.5,
          },
          i,
        ),
      ),
      loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0.01, aggregation: 'token-mean' },
      optimizer: { learningRate: 1e-3, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0.01, maxGradNorm: 1 },
    })
  }
  return digest(trainer.parameters())
}

describe('bits', () => {
  it.each(['plain', 'relaxed'] as const)('of trained weights depend on the shards and not on the threads (%s)', async (tier) => {
    const reference = await trainedWeights({ threads: 1, shards: 4, tier })
    expect(await trainedWeights({ threads: 2, shards: 4, tier })).toBe(reference)
    expect(await trainedWeights({ threads: 8, shards: 4, tier })).toBe(reference)
    expect(await trainedWeights({ threads: 2, shards: 3, tier })).not.toBe(reference)
  })

  it.each(['plain', 'relaxed'] as const)('of a row do not depend on the rows beside it (%s)', async (tier) => {
    const rows = randomRows(createNumbers(5), lengths, model.vocabularySize)
    await using trainer = await createTrainer({ model, tier, microBatchTokens: 64 })
    const together = await trainer.learner.logprobs(rows, 1)
    await using other = await createTrainer({ model, tier, microBatchTokens: 200, threads: 1 })
    const elsewhere = await other.learner.logprobs(rows.toReversed(), 1)
    expect(elsewhere.toReversed()).toEqual(together)
    for (const [index, row] of rows.entries()) {
      const [alone] = await trainer.learner.logprobs([row], 1)
      expect(alone).toEqual(together[index])
    }
  })

  it('do not depend on what scratch held before', async () => {
    const rows = randomRows(createNumbers(6), lengths, model.vocabularySize)
    const samples = rows.map((tokenIds, i) => toSample({ tokenIds }, i))
    const optimizer = { learningRate: 1e-3, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 } as const
    const weights: string[] = []
    for (const dirt of [0, Number.NaN]) {
      await using trainer = await createTrainer({ model })
      const { layout, views } = trainer.pool
      const end = layout.scratch + layout.scratchBytes * layout.options.threads
      views.f32.fill(dirt, layout.scratch / 4, end / 4)
      await trainer.learner.update({ samples, loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
      weights.push(digest(trainer.parameters()))
    }
    expect(weights[1]).toBe(weights[0])
  })
})
