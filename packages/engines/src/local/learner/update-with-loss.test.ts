import {
  cispo,
  drGrpo,
  gspo,
  isClipped,
  type LossDefinition,
  type PolicyLoss,
  type PolicyLossRow,
  ppoClipGradient,
  ppoClipLoss,
  type RowLoss,
  type TrainingSample,
  updateWithLoss,
} from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, lastGradient, randomRows, smallModel, type Trainer, toSample } from '../goldens/trainer.ts'
import { float64Logprobs } from '../testing/float64-logprobs.ts'

const model = smallModel()
const clip = { clipLow: 0.2, clipHigh: 0.28 }
const sum = (values: ArrayLike<number>): number => Array.from(values).reduce((total, value) => total + value, 0)
const norm = (values: ArrayLike<number>): number => Math.hypot(...Array.from(values))

/** The loss in the box, as somebody would write it: a mean over tokens. */
const ppoClip: PolicyLoss = (rows) => {
  const tokens = sum(rows.map(({ logprobs }) => logprobs.length))
  return rows.map(({ logprobs, rolloutLogprobs, advantage }) => ({
    loss: sum(logprobs.map((logprob, t) => ppoClipLoss(logprob, rolloutLogprobs[t]!, advantage, clip))) / tokens,
    gradient: logprobs.map((logprob, t) => ppoClipGradient(logprob, rolloutLogprobs[t]!, advantage, clip) / tokens),
    clipped: sum(logprobs.map((logprob, t) => Number(isClipped(logprob, rolloutLogprobs[t]!, advantage, clip)))),
  }))
}

/** Rows of which two are equal and others begin alike, with ratios on both sides of the clips; the last has no trained token. */
async function createSamples({ learner }: Trainer, temperature: number): Promise<TrainingSample[]> {
  const next = createNumbers(9)
  const [a, b, c] = randomRows(next, [14, 9, 11], model.vocabularySize) as [Int32Array, Int32Array, Int32Array]
  const rows = [a, a, Int32Array.of(...a.slice(0, 8), ...b.slice(0, 5)), Int32Array.of(...a.slice(0, 8), ...c.slice(0, 3)), c, b]
  const now = await learner.logprobs(rows, temperature)
  return rows.map((tokenIds, i) => {
    const rolloutLogprobs = now[i]!.map((value) => value + (next() - 0.5) * 0.6 + (i - 2) * 0.1)
    const lossMask = Uint8Array.from(tokenIds, (_, at) => Number(i < 5 && at > 3 && next() < 0.8))
    return toSample({ tokenIds, lossMask, rolloutLogprobs, advantage: i % 2 === 0 ? 1.5 : -1.2 }, i)
  })
}

describe('a loss of one’s own', () => {
  it.each(Object.entries({ cispo: cispo(), gspo: gspo({ low: 0.05, high: 0.08 }), drGrpo: drGrpo(), ppoClip }))(
    '%s has the gradient that it has in float64',
    async (name, loss) => {
      await using trainer = await createTrainer({ model })
      const temperature = 1.2
      const samples = await createSamples(trainer, temperature)
      const metrics = await updateWithLoss(trainer.learner, { samples, loss, temperature, optimizer: gradientOnly })
      const gradient = lastGradient(trainer)
      const { table } = trainer.pool.layout
      const rowsAt = (parameters: Float64Array): PolicyLossRow[] =>
        samples.slice(0, 5).map((sample) => {
          const logprobs = float64Logprobs({ model, table, parameters, temperature }, sample.tokenIds)
          const { reward, group, advantage } = sample
          const trained = (values: ArrayLike<number>) => Float64Array.from(values).filter((_, i) => sample.lossMask[i] === 1)
          const rolloutLogprobs = trained(sample.rolloutLogprobs)
          return { logprobs: trained(logprobs), rolloutLogprobs, advantage: advantage!, reward, group, sample }
        })
      const parameters = Float64Array.from(trainer.parameters())
      // No gradient goes through the weights of CISPO.
      const weights = loss(rowsAt(parameters)).map((row) => Array.from(row.gradient))
      const lossAt = (values: Float64Array): number =>
        name === 'cispo'
          ? sum(rowsAt(values).flatMap(({ logprobs }, row) => Array.from(logprobs, (logprob, t) => weights[row]![t]! * logprob)))
          : sum(loss(rowsAt(values)).map((row) => row.loss))
      expect(metrics.loss).toBeCloseTo(lossAt(parameters), 6)
      expect(metrics.clipFraction > 0).toBe(name !== 'cispo')
      const next = createNumbers(4)
      const step = 1e-5
      for (let k = 0; k < 6; k++) {
        // The first is that of the gradient itself; the others are random.
        const direction = parameters.map((_, i) => (k === 0 ? (gradient[i]! * 3) / norm(gradient) : next() - 0.5))
        const moved = (by: number) => lossAt(parameters.map((value, i) => value + by * direction[i]!))
        const slope = (moved(step) - moved(-step)) / (2 * step)
        const found = sum(direction.map((value, i) => value * gradient[i]!))
        expect(Math.abs(found - slope) / norm(gradient) / norm(direction)).toBeLessThan(1e-6)
      }
    },
  )

  it.each([
    { temperature: 1, klCoefficient: 0, entropyCoefficient: 0 },
    { temperature: 1.2, klCoefficient: 0.1, entropyCoefficient: 0.05 },
    // Greedy sampling, whose logprobs are of the bare logits.
    { temperature: 0, klCoefficient: 0, entropyCoefficient: 0 },
  ])('that is the one in the box has its gradient and its metrics: %o', async ({ temperature, ...terms }) => {
    await using trainer = await createTrainer({ model })
    const samples = await createSamples(trainer, temperature)
    const referenceLogprobs = samples.map(({ rolloutLogprobs }) => rolloutLogprobs.map((value) => value - 0.2))
    const request = { samples, temperature, optimizer: gradientOnly, ...(terms.klCoefficient > 0 && { referenceLogprobs }) }
    const definition: LossDefinition = { kind: 'ppo-clip', ...clip, ...terms, aggregation: 'token-mean' }
    const expected = await trainer.learner.update({ ...request, loss: definition })
    const gradient = lastGradient(trainer)
    const metrics = await updateWithLoss(trainer.learner, { ...request, ...terms, loss: ppoClip })
    expect(norm(lastGradient(trainer).map((value, i) => value - gradient[i]!)) / norm(gradient)).toBeLessThan(1e-6)
    expect(expected.clipFraction).toBeGreaterThan(0)
    for (const name of ['loss', 'gradNorm', 'clipFraction', 'entropy', 'kl'] as const) expect(metrics[name]).toBeCloseTo(expected[name]!, 6)
    expect(metrics).toMatchObject({ trainedTokens: expected.trainedTokens, logprobs: expected.logprobs })
  })

  it('sees the trained tokens of each sample that has some, and the reference where there is one', async () => {
    await using trainer = await createTrainer({ model })
    const samples = await createSamples(trainer, 1)
    const referenceLogprobs = samples.map(({ rolloutLogprobs }) => rolloutLogprobs.map((value) => value - 0.2))
    let seen: readonly PolicyLossRow[] = []
    const loss: PolicyLoss = (rows) => {
      seen = rows
      return ppoClip(rows)
    }
    const { logprobs } = await updateWithLoss(trainer.learner, { samples, referenceLogprobs, loss, optimizer: gradientOnly })
    expect(seen).toHaveLength(5)
    for (const [i, row] of seen.entries()) {
      const trained = (values: Float32Array) => [...values.filter((_, at) => samples[i]!.lossMask[at] === 1)]
      expect([...row.logprobs]).toEqual([...logprobs![i]!])
      expect([...row.rolloutLogprobs]).toEqual(trained(samples[i]!.rolloutLogprobs))
      expect([...row.referenceLogprobs!]).toEqual(trained(referenceLogprobs[i]!))
      const { advantage, reward, group } = samples[i]!
      expect(row).toMatchObject({ advantage, reward, group, sample: samples[i] })
    }
  })

  it('names numbers, whose means over the rows that have them are metrics', async () => {
    await using trainer = await createTrainer({ model })
    const samples = await createSamples(trainer, 1)
    const loss: PolicyLoss = (rows) => ppoClip(rows).map((row, i) => ({ ...row, metrics: { index: i, ...(i > 2 && { late: i }) } }))
    const { named } = await updateWithLoss(trainer.learner, { samples, loss, optimizer: gradientOnly })
    expect(named).toEqual({ index: 2, late: 3.5 })
  })
})

describe('bad losses', () => {
  let trainer: Trainer
  let samples: TrainingSample[]
  beforeAll(async () => {
    trainer = await createTrainer({ model })
    samples = await createSamples(trainer, 1)
  })
  afterAll(() => trainer[Symbol.asyncDispose]())
  const optimizer = { ...gradientOnly, learningRate: 1e-2 }
  const update = (loss: unknown) => updateWithLoss(trainer.learner, { samples, loss: loss as PolicyLoss, optimizer })
  /** The answer of a right loss, with one row changed. */
  const changed =
    (change: (row: RowLoss) => unknown): unknown =>
    (rows: readonly PolicyLossRow[]) =>
      ppoClip(rows).map((row, i) => (i === 1 ? change(row) : row))
  const withDerivative = (value: number) => changed((row) => ({ ...row, gradient: Float64Array.from(row.gradient).with(2, value) }))

  it.each<[string, unknown, string]>([
    [
      'throws',
      function mine() {
        throw new Error('no ratio')
      },
      'The loss "mine" threw: no ratio; the weights are as before.',
    ],
    ['answers too few rows', (rows: readonly PolicyLossRow[]) => ppoClip(rows).slice(1), 'answered 4 rows for 5'],
    [
      'answers too few derivatives',
      changed((row) => ({ ...row, gradient: [1] })),
      'answered 1 derivatives for the 7 tokens of row 1 (task "task-1")',
    ],
    ['answers no derivatives', changed(({ loss }) => ({ loss })), 'answered no derivatives for the 7 tokens of row 1'],
    ['answers a row that is none', changed(() => null), 'answered no derivatives for the 7 tokens of row 1'],
    ['answers a derivative of NaN', withDerivative(Number.NaN), 'answered NaN as derivative 2 of row 1 (task "task-1")'],
    ['answers an infinite derivative', withDerivative(Number.NEGATIVE_INFINITY), 'answered -Infinity as derivative 2 of row 1'],
    ['answers a derivative that float32 does not hold', withDerivative(1e39), 'answered Infinity as derivative 2 of row 1'],
    ['answers a loss of NaN', changed((row) => ({ ...row, loss: Number.NaN })), 'answered NaN as loss of row 1'],
    ['answers no loss', changed(({ gradient }) => ({ gradient })), 'answered undefined as loss of row 1'],
    ['names a number that is none', changed((row) => ({ ...row, metrics: { ratio: Number.NaN } })), 'answered NaN as ratio of row 1'],
    ['answers a promise', async (rows: readonly PolicyLossRow[]) => ppoClip(rows), 'answered a promise and must answer a list at once'],
    ['answers a promise that rejects', async () => Promise.reject(new Error('later')), 'answered a promise'],
    ['makes a loss, and is none', () => gspo(), 'answered a function and must answer a list at once'],
    ['answers nothing', () => {}, 'answered undefined and must answer a list at once'],
    [
      'sorts its rows',
      (rows: PolicyLossRow[]) => ppoClip(rows.sort((a, b) => a.advantage - b.advantage)),
      'threw: Cannot assign to read only property',
    ],
    [
      'changes a row',
      (rows: PolicyLossRow[]) => ppoClip(rows.map((row) => Object.assign(row, { advantage: 0 }))),
      'threw: Cannot assign to read only property',
    ],
  ])('one that %s is refused, and the weights are as before', async (_name, loss, message) => {
    const before = trainer.parameters()
    await expect(update(loss)).rejects.toMatchObject({ code: 'LOSS_INVALID', message: expect.stringContaining(message) })
    expect(trainer.parameters()).toEqual(before)
  })

  it('one that writes into what it gets changes copies', async () => {
    await using other = await createTrainer({ model })
    await using third = await createTrainer({ model })
    const original = structuredClone(samples)
    const loss: PolicyLoss = (rows) => {
      const answers = ppoClip(rows)
      for (const { logprobs, rolloutLogprobs, sample } of rows)
        for (const values of [logprobs, rolloutLogprobs, sample.tokenIds, sample.lossMask]) values.fill(1)
      return answers
    }
    const metrics = await updateWithLoss(other.learner, { samples, loss, optimizer })
    expect(samples).toEqual(original)
    expect(metrics).toEqual(await updateWithLoss(third.learner, { samples, loss: ppoClip, optimizer }))
    expect(other.parameters()).toEqual(third.parameters())
  })

  it('one of zeros alone is an update without a gradient', async () => {
    await using other = await createTrainer({ model })
    const before = other.parameters()
    const loss: PolicyLoss = (rows) => rows.map(({ logprobs }) => ({ loss: 0, gradient: logprobs.map(() => 0) }))
    expect(await updateWithLoss(other.learner, { samples, loss, optimizer })).toMatchObject({ loss: 0, gradNorm: 0, clipFraction: 0 })
    expect(other.parameters()).toEqual(before)
  })

  it.each([
    ['no advantage', { advantage: null }, 'has no advantage'],
    ['too few rollout logprobs', { rolloutLogprobs: new Float32Array(2) }, '2 rolloutLogprobs'],
  ])('a sample with %s is refused before the loss sees it', async (_name, change, message) => {
    const request = { samples: samples.map((sample) => ({ ...sample, ...change })), loss: ppoClip, optimizer }
    const refused = { code: 'TRAINER_SAMPLE_INVALID', message: expect.stringContaining(message) }
    await expect(updateWithLoss(trainer.learner, request)).rejects.toMatchObject(refused)
  })

  it('a KL term without a reference is refused, and a batch without a trained token', async () => {
    const request = { samples, loss: ppoClip, optimizer }
    await expect(updateWithLoss(trainer.learner, { ...request, klCoefficient: 0.1 })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    const empty = { ...request, samples: samples.slice(5) }
    await expect(updateWithLoss(trainer.learner, empty)).rejects.toMatchObject({ code: 'TRAINER_EMPTY_BATCH' })
  })
})
