import type { LossDefinition } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, lastGradient, randomRows, smallModel, toSample } from '../goldens/trainer.ts'

const shapes = {
  'grouped heads, tied': smallModel(),
  'one key head, untied, no head norm': smallModel({ kvHeads: 1, tieWordEmbeddings: false, qkNorm: false, vocabularySize: 41 }),
  'one layer, wide heads': smallModel({ layers: 1, heads: 2, headDim: 24, hiddenSize: 20, intermediateSize: 36 }),
}
const policy: LossDefinition = {
  kind: 'ppo-clip',
  clipLow: 0.2,
  clipHigh: 0.3,
  klCoefficient: 0.1,
  entropyCoefficient: 0.05,
  aggregation: 'sequence-mean',
}

describe('the gradient and the slope of the loss agree', () => {
  it.each(Object.entries(shapes))('%s', async (_name, model) => {
    await using trainer = await createTrainer({ model })
    const next = createNumbers(3)
    const rows = randomRows(next, [40, 2, 13, 1, 25], model.vocabularySize)
    const logprobs = await trainer.learner.logprobs(rows, 1.3)
    const near = (spread: number): Float32Array[] => logprobs.map((row) => row.map((value) => value + (next() - 0.5) * spread))
    // Ratios stay within the clip, where the loss is smooth.
    const rollout = near(0.1)
    const samples = rows.map((tokenIds, i) => toSample({ tokenIds, rolloutLogprobs: rollout[i]!, advantage: next() * 4 - 2 }, i))
    const referenceLogprobs = near(1)
    const coefficients = rows.map((row) => Float32Array.from(row, () => (next() - 0.6) / 20))
    const linear = { kind: 'linear', coefficients, entropyCoefficient: 0.05, aggregation: 'sequence-mean' } as const
    const base = trainer.parameters()
    for (const loss of [policy, { kind: 'sft', aggregation: 'token-mean' } as const, linear]) {
      const lossAt = async (values: Float32Array): Promise<number> => {
        await trainer.setParameters(values)
        const metrics = await trainer.learner.update({ samples, referenceLogprobs, loss, optimizer: gradientOnly, temperature: 1.3 })
        return metrics.loss
      }
      await lossAt(base)
      const gradient = lastGradient(trainer)
      for (const parameter of trainer.pool.layout.table.parameters) {
        const direction = new Float32Array(base.length)
        for (let i = parameter.offset; i < parameter.offset + parameter.size; i++) direction[i] = Math.sign(gradient[i]!)
        const slope = direction.reduce((sum, value, i) => sum + value * gradient[i]!, 0)
        // A step that changes the loss by about 2e-3: large against float32, small against its curvature.
        const step = Math.min(2e-3 / slope, 2e-3)
        const shifted = (by: number): Float32Array => base.map((value, i) => value + by * direction[i]!)
        const difference = ((await lossAt(shifted(step))) - (await lossAt(shifted(-step)))) / (2 * step)
        expect(Math.abs(difference / slope - 1), parameter.name).toBeLessThan(0.02)
      }
    }
  })
})
