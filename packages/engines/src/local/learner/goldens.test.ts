import type { TrainingSample } from '@aworld-train/core'
import { describe, expect, it } from 'vitest'
import { type Golden, goldenNames, readGolden } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, lastGradient, type Trainer, toSample } from '../goldens/trainer.ts'

describe.each(['plain', 'relaxed'] as const)('%s kernels beside PyTorch in float64', (tier) => {
  it.each(goldenNames)('give the logprobs, losses and gradients of %s', async (name) => {
    const golden = readGolden(name)
    await using trainer = await createTrainer({ model: golden.model, seed: golden.seed, tier })
    const logprobs = await trainer.learner.logprobs(
      golden.rows.map(({ tokenIds }) => tokenIds),
      golden.temperature,
    )
    golden.rows.forEach((row, index) => {
      row.logprobs.forEach((expected, token) => {
        expect(Math.abs(logprobs[index]![token]! - expected)).toBeLessThanOrEqual(1e-5 * Math.max(1, Math.abs(expected)))
      })
    })

    const samples = golden.rows.map((row, index) => toSample({ ...row, rolloutLogprobs: row.rollout }, index))
    const referenceLogprobs = golden.rows.map(({ reference }) => reference)
    for (const expected of Object.values(golden.losses)) await expectLoss(trainer, golden, expected, { samples, referenceLogprobs })
  })

  it.each(goldenNames)('give them where the trained tokens of %s are shared out among samples that begin one another', async (name) => {
    const golden = readGolden(name)
    await using trainer = await createTrainer({ model: golden.model, seed: golden.seed, tier })
    const parts = golden.rows.flatMap((row, index) =>
      [0, 1, 2].map((part) => {
        const [from, to] = [part, part + 1].map((cut) => Math.ceil((row.tokenIds.length * cut) / 3)) as [number, number]
        const lossMask = row.lossMask.map((mask, at) => (at >= from && at < to ? mask : 0))
        return { sample: toSample({ ...row, lossMask, rolloutLogprobs: row.rollout }, index), reference: row.reference }
      }),
    )
    const samples = parts.map(({ sample }) => sample)
    const referenceLogprobs = parts.map(({ reference }) => reference)
    // Means over sequences would count the parts.
    for (const expected of Object.values(golden.losses).filter(({ aggregation }) => aggregation === 'token-mean')) {
      await expectLoss(trainer, golden, expected, { samples, referenceLogprobs })
    }
  })
})

async function expectLoss(
  trainer: Trainer,
  golden: Golden,
  expected: Golden['losses'][string],
  rows: { readonly samples: readonly TrainingSample[]; readonly referenceLogprobs: readonly Float32Array[] },
): Promise<void> {
  const { kind, aggregation } = expected
  const loss = kind === 'sft' ? { kind, aggregation } : { kind, aggregation, ...golden.ppo }
  const metrics = await trainer.learner.update({ ...rows, loss, optimizer: gradientOnly, temperature: golden.temperature })
  expect(metrics.loss).toBeCloseTo(expected.loss, 5)
  expect(metrics.gradNorm! / expected.gradNorm).toBeCloseTo(1, 5)
  expect(metrics.kl).toBeCloseTo(expected.kl, 5)
  expect(metrics.entropy).toBeCloseTo(expected.entropy, 5)
  expect(metrics.clipFraction).toBeCloseTo(expected.clipFraction, 12)
  const gradient = lastGradient(trainer)
  for (const { name: tensor, offset, size } of trainer.pool.layout.table.parameters) {
    let largest = 0
    let error = 0
    for (let i = offset; i < offset + size; i++) {
      largest = Math.max(largest, Math.abs(expected.gradient[i]!))
      error = Math.max(error, Math.abs(gradient[i]! - expected.gradient[i]!))
    }
    expect(error / largest, tensor).toBeLessThanOrEqual(1e-5)
  }
}
