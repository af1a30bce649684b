import { type LossDefinition, lossWeights, type OptimizerSettings, ppoClipGradient, type UpdateRequest } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNumbers } from '../goldens/goldens.ts'
import { createTrainer, gradientOnly, lastGradient, randomRows, smallModel, type Trainer, toSample } from '../goldens/trainer.ts'

const sft: LossDefinition = { kind: 'sft', aggregation: 'token-mean' }
const ppo = {
  kind: 'ppo-clip',
  clipLow: 0.2,
  clipHigh: 0.28,
  klCoefficient: 0,
  entropyCoefficient: 0,
  aggregation: 'token-mean',
} as const satisfies LossDefinition
const linear = { kind: 'linear', coefficients: [], entropyCoefficient: 0, aggregation: 'token-mean' } as const
const optimizer: OptimizerSettings = { learningRate: 3e-3, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0.01, maxGradNorm: 1 }
const model = smallModel()
const ids = (...values: number[]): Int32Array => Int32Array.from(values)

describe('an update', () => {
  it('lowers the loss on what it trains on', async () => {
    await using trainer = await createTrainer({ model })
    const samples = randomRows(createNumbers(2), [12, 20, 5], model.vocabularySize).map((tokenIds, i) => toSample({ tokenIds }, i))
    const first = await trainer.learner.update({ samples, loss: sft, optimizer })
    for (let step = 0; step < 60; step++) await trainer.learner.update({ samples, loss: sft, optimizer })
    const last = await trainer.learner.update({ samples, loss: sft, optimizer })
    expect(first.loss).toBeGreaterThan(3)
    expect(last.loss).toBeLessThan(0.5)
    expect(last.trainedTokens).toBe(34)
  })

  it('raises the logprobs of samples with an advantage and lowers the others', async () => {
    await using trainer = await createTrainer({ model })
    const rows = randomRows(createNumbers(4), [10, 10], model.vocabularySize)
    const before = await trainer.learner.logprobs(rows, 1)
    const samples = rows.map((tokenIds, i) => toSample({ tokenIds, rolloutLogprobs: before[i]!, advantage: i === 0 ? 1 : -1 }, i))
    for (let step = 0; step < 3; step++) await trainer.learner.update({ samples, loss: ppo, optimizer })
    const after = await trainer.learner.logprobs(rows, 1)
    const sum = (row: Float32Array): number => row.reduce((total, value) => total + value, 0)
    expect(sum(after[0]!)).toBeGreaterThan(sum(before[0]!))
    expect(sum(after[1]!)).toBeLessThan(sum(before[1]!))
  })

  it('whose batch exceeds a command gives the gradient of the whole batch', async () => {
    const samples = randomRows(createNumbers(8), [40, 33, 70, 8, 90, 2, 51], model.vocabularySize).map((tokenIds, i) =>
      toSample({ tokenIds }, i),
    )
    await using whole = await createTrainer({ model })
    await using pieces = await createTrainer({ model, batchTokens: 100, batchRows: 2 })
    const request: UpdateRequest = { samples, loss: { kind: 'sft', aggregation: 'sequence-mean' }, optimizer: gradientOnly }
    const expected = await whole.learner.update(request)
    const metrics = await pieces.learner.update(request)
    expect(metrics.trainedTokens).toBe(expected.trainedTokens)
    expect(metrics.loss).toBeCloseTo(expected.loss, 6)
    const [a, b] = [lastGradient(whole), lastGradient(pieces)]
    for (let i = 0; i < a.length; i++) expect(Math.abs(a[i]! - b[i]!)).toBeLessThan(1e-6)
    const rows = samples.map(({ tokenIds }) => tokenIds)
    expect(await pieces.learner.logprobs(rows, 1)).toEqual(await whole.learner.logprobs(rows, 1))
  })

  it('does not depend on what follows the last trained token, nor on samples without one', async () => {
    await using trainer = await createTrainer({ model })
    await using other = await createTrainer({ model })
    const mask = Uint8Array.of(0, 0, 1, 1, 0, 1)
    const longer = toSample({ tokenIds: ids(4, 8, 15, 16, 23, 30, 36, 1), lossMask: Uint8Array.of(...mask, 0, 0) })
    const untrained = toSample({ tokenIds: ids(9, 9, 9), lossMask: new Uint8Array(3) })
    const request = { loss: { kind: 'sft', aggregation: 'sequence-mean' }, optimizer } as const
    const metrics = await trainer.learner.update({ ...request, samples: [longer, untrained] })
    const expected = await other.learner.update({
      ...request,
      samples: [toSample({ tokenIds: ids(4, 8, 15, 16, 23, 30), lossMask: mask })],
    })
    expect(metrics.trainedTokens).toBe(3)
    expect(metrics.loss).toBe(expected.loss)
    expect(trainer.parameters()).toEqual(other.parameters())
  })

  it('trains rows of 2,048 tokens', async () => {
    const long = smallModel({ contextLength: 2048, layers: 1 })
    await using trainer = await createTrainer({ model: long, microBatchTokens: 256 })
    const [row] = randomRows(createNumbers(12), [2048], long.vocabularySize)
    const short = row!.slice(0, 300)
    const [full, part] = await trainer.learner.logprobs([row!, short], 1)
    expect(full!.slice(0, 300)).toEqual(part)
    const metrics = await trainer.learner.update({ samples: [toSample({ tokenIds: row! })], loss: sft, optimizer })
    const mean = full!.reduce((sum, value) => sum + value, 0) / 2047
    expect(metrics.loss).toBeCloseTo(-mean, 4)
    expect(metrics.gradNorm).toBeGreaterThan(0)
  })

  it('clips the gradient by its global norm', async () => {
    await using trainer = await createTrainer({ model })
    const samples = [toSample({ tokenIds: ids(1, 2, 3, 4, 5) })]
    const free = await trainer.learner.update({ samples, loss: sft, optimizer: gradientOnly })
    const full = lastGradient(trainer)
    const limit = free.gradNorm! / 4
    const clipped = await trainer.learner.update({ samples, loss: sft, optimizer: { ...gradientOnly, maxGradNorm: limit } })
    expect(clipped.gradNorm).toBeCloseTo(free.gradNorm!, 6)
    const quarter = lastGradient(trainer)
    for (let i = 0; i < full.length; i++) expect(quarter[i]).toBeCloseTo(full[i]! / 4, 5)
  })

  it.each(['token-mean', 'sequence-mean'] as const)('by derivatives of each sample is the one by their loss: %s', async (aggregation) => {
    await using trainer = await createTrainer({ model })
    const [a, b] = randomRows(createNumbers(6), [12, 7], model.vocabularySize) as [Int32Array, Int32Array]
    // Equal rows with different advantages and rollout logprobs, and one with the same prefix.
    const rows = [a, a, Int32Array.of(...a.slice(0, 8), ...b), b]
    const now = await trainer.learner.logprobs(rows, 1)
    const next = createNumbers(7)
    const samples = rows.map((tokenIds, i) =>
      toSample({ tokenIds, rolloutLogprobs: now[i]!.map((value) => value + next() - 0.5), advantage: i % 2 === 0 ? 1.5 : -1 }, i),
    )
    const own = { ...ppo, entropyCoefficient: 0.1, aggregation }
    const weights = lossWeights(samples, aggregation)
    const coefficients = samples.map(({ rolloutLogprobs, advantage }, i) =>
      now[i]!.map((logprob, t) => weights[i]! * ppoClipGradient(logprob, rolloutLogprobs[t]!, advantage!, own)),
    )
    const expected = await trainer.learner.update({ samples, loss: own, optimizer: gradientOnly })
    const gradient = lastGradient(trainer)
    const { entropyCoefficient } = own
    const loss = { kind: 'linear', coefficients, entropyCoefficient, aggregation } as const
    const metrics = await trainer.learner.update({ samples, loss, optimizer: gradientOnly })
    expect(expected.clipFraction).toBeGreaterThan(0)
    const { logprobs, trainedTokens, entropy } = expected
    expect(metrics).toMatchObject({ logprobs, trainedTokens, entropy, clipFraction: 0 })
    const apart = lastGradient(trainer).map((value, i) => value - gradient[i]!)
    expect(Math.hypot(...apart) / Math.hypot(...gradient)).toBeLessThan(1e-6)
  })

  it('serves updates and logprobs in the order they were asked for', async () => {
    await using trainer = await createTrainer({ model })
    await using other = await createTrainer({ model })
    const rows = [ids(1, 2, 3, 4, 5)]
    const request: UpdateRequest = { samples: [toSample({ tokenIds: rows[0]! })], loss: sft, optimizer }
    const [, early, , late] = await Promise.all([
      trainer.learner.update(request),
      trainer.learner.logprobs(rows, 1),
      trainer.learner.update(request),
      trainer.learner.logprobs(rows, 1),
    ])
    await other.learner.update(request)
    expect(await other.learner.logprobs(rows, 1)).toEqual(early)
    await other.learner.update(request)
    expect(await other.learner.logprobs(rows, 1)).toEqual(late)
  })

  it('after resetOptimizer is the first one of a fresh optimiser', async () => {
    await using trainer = await createTrainer({ model })
    const request: UpdateRequest = { samples: [toSample({ tokenIds: ids(1, 2, 3, 4, 5) })], loss: sft, optimizer }
    const start = trainer.parameters()
    await trainer.learner.update(request)
    const once = trainer.parameters()
    await trainer.setParameters(start)
    await trainer.learner.update(request)
    expect(trainer.parameters()).not.toEqual(once)
    await trainer.setParameters(start)
    await trainer.learner.resetOptimizer()
    await trainer.learner.update(request)
    expect(trainer.parameters()).toEqual(once)
  })
})

describe('numbers that are not finite', () => {
  const good = [toSample({ tokenIds: ids(3, 1, 4, 1, 5), rolloutLogprobs: new Float32Array(5).fill(-3) })]
  it.each([
    ['an advantage of NaN', { advantage: Number.NaN }],
    ['an infinite advantage', { advantage: Number.POSITIVE_INFINITY }],
    ['a rollout logprob of NaN', { rolloutLogprobs: new Float32Array(5).fill(Number.NaN) }],
    ['a rollout logprob of minus infinity', { rolloutLogprobs: new Float32Array(5).fill(Number.NEGATIVE_INFINITY) }],
  ])('reject the update and leave weights and optimiser as they were: %s', async (_name, change) => {
    await using trainer = await createTrainer({ model })
    await using untouched = await createTrainer({ model })
    const bad = [...good, toSample({ tokenIds: ids(3, 1, 4, 1, 5), ...change })]
    const before = trainer.parameters()
    await expect(trainer.learner.update({ samples: bad, loss: ppo, optimizer })).rejects.toMatchObject({ code: 'TRAINER_NOT_FINITE' })
    expect(trainer.parameters()).toEqual(before)
    const expected = await untouched.learner.update({ samples: good, loss: ppo, optimizer })
    expect(await trainer.learner.update({ samples: good, loss: ppo, optimizer })).toEqual(expected)
    expect(trainer.parameters()).toEqual(untouched.parameters())
  })

  it('reject the update when a weight is NaN', async () => {
    await using trainer = await createTrainer({ model })
    const weights = trainer.parameters()
    weights[trainer.pool.layout.table.layers[1]!.gateUp + 3] = Number.NaN
    await trainer.setParameters(weights)
    await expect(trainer.learner.update({ samples: good, loss: sft, optimizer })).rejects.toMatchObject({
      code: 'TRAINER_NOT_FINITE',
      message: expect.stringContaining('loss is NaN'),
    })
  })
})

describe('bad input', () => {
  let trainer: Trainer
  beforeAll(async () => {
    trainer = await createTrainer({ model })
  })
  afterAll(() => trainer.pool.close())

  const fine = toSample({ tokenIds: ids(1, 2, 3) })
  const cases: [string, Partial<UpdateRequest>, { code: string; message: string }][] = [
    ['no samples', { samples: [] }, { code: 'TRAINER_EMPTY_BATCH', message: 'no samples' }],
    [
      'no trained token',
      { samples: [toSample({ tokenIds: ids(1), lossMask: Uint8Array.of(0) })] },
      { code: 'TRAINER_EMPTY_BATCH', message: 'loss mask 1' },
    ],
    [
      'a sample without tokens',
      { samples: [fine, toSample({ tokenIds: ids() }, 1)] },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'Sample 1 (task "task-1") has no tokens' },
    ],
    [
      'an id beyond the vocabulary',
      { samples: [toSample({ tokenIds: ids(1, 37) })] },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'token id 37 at 1' },
    ],
    ['a negative id', { samples: [toSample({ tokenIds: ids(-1, 3) })] }, { code: 'TRAINER_SAMPLE_INVALID', message: 'token id -1 at 0' }],
    [
      'a short loss mask',
      { samples: [toSample({ tokenIds: ids(1, 2), lossMask: Uint8Array.of(1) })] },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'loss mask of 1' },
    ],
    [
      'a trained first token',
      { samples: [toSample({ tokenIds: ids(1, 2), lossMask: Uint8Array.of(1, 1) })] },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'first token' },
    ],
    [
      'a row beyond the context',
      { samples: [toSample({ tokenIds: new Int32Array(97) })] },
      { code: 'POLICY_CONTEXT_OVERFLOW', message: '97 tokens' },
    ],
    [
      'no advantage',
      { samples: [toSample({ tokenIds: ids(1, 2), advantage: null })], loss: ppo },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'no advantage' },
    ],
    [
      'too few rollout logprobs',
      { samples: [toSample({ tokenIds: ids(1, 2), rolloutLogprobs: new Float32Array(1) })], loss: ppo },
      { code: 'TRAINER_SAMPLE_INVALID', message: '1 rolloutLogprobs' },
    ],
    ['KL without a reference', { loss: { ...ppo, klCoefficient: 0.1 } }, { code: 'CONFIG_INVALID', message: 'referenceLogprobs' }],
    [
      'a reference of another length',
      { loss: ppo, referenceLogprobs: [new Float32Array(2)] },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'referenceLogprobs' },
    ],
    [
      'a learning rate of NaN',
      { optimizer: { ...optimizer, learningRate: Number.NaN } },
      { code: 'CONFIG_INVALID', message: 'learningRate' },
    ],
    ['a beta of 1', { optimizer: { ...optimizer, betas: [0.9, 1] } }, { code: 'CONFIG_INVALID', message: 'betas' }],
    [
      'another loss',
      { loss: { ...sft, kind: 'ppo' as never } },
      { code: 'CONFIG_INVALID', message: 'no loss "ppo"; use "sft" or "ppo-clip" or "linear"' },
    ],
    ['a near miss of a loss', { loss: { ...ppo, kind: 'ppoclip' as never } }, { code: 'CONFIG_INVALID', message: 'mean "ppo-clip"?' }],
    ['no loss', { loss: undefined as never }, { code: 'CONFIG_INVALID', message: 'no loss undefined' }],
    [
      'another aggregation',
      { loss: { kind: 'sft', aggregation: 'tokens-mean' as never } },
      { code: 'CONFIG_INVALID', message: 'mean "token-mean"?' },
    ],
    ['a loss without its clip', { loss: { ...ppo, clipLow: undefined as never } }, { code: 'CONFIG_INVALID', message: 'clipLow' }],
    [
      'coefficients of too few samples',
      { loss: { ...linear, coefficients: [] } },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'coefficients do not fit sample 0' },
    ],
    [
      'too few coefficients',
      { loss: { ...linear, coefficients: [new Float32Array(1)] } },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'coefficients do not fit sample 0' },
    ],
    [
      'no coefficients',
      { loss: { ...linear, coefficients: undefined as never } },
      { code: 'TRAINER_SAMPLE_INVALID', message: 'coefficients do not fit sample 0' },
    ],
    [
      'a linear loss without its entropy coefficient',
      { loss: { ...linear, entropyCoefficient: undefined as never } },
      { code: 'CONFIG_INVALID', message: 'entropyCoefficient' },
    ],
    [
      'a coefficient of NaN',
      { loss: { ...linear, coefficients: [Float32Array.from(fine.tokenIds, () => Number.NaN)] } },
      { code: 'TRAINER_NOT_FINITE', message: 'loss is NaN' },
    ],
    ['a negative temperature', { temperature: -1 }, { code: 'CONFIG_INVALID', message: 'temperature' }],
  ]
  it.each(cases)('%s is refused, and named', async (_name, change, { code, message }) => {
    const before = trainer.parameters()
    const update = trainer.learner.update({ samples: [fine], loss: sft, optimizer, ...change })
    await expect(update).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
    expect(trainer.parameters()).toEqual(before)
  })

  it('rows that cannot be scored are refused', async () => {
    await expect(trainer.learner.logprobs([ids(1), ids(99)], 1)).rejects.toMatchObject({ code: 'TRAINER_SAMPLE_INVALID' })
    await expect(trainer.learner.logprobs([new Int32Array(97)], 1)).rejects.toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
    expect(await trainer.learner.logprobs([], 1)).toEqual([])
    expect(await trainer.learner.logprobs([ids(5)], 1)).toEqual([Float32Array.of(0)])
  })
})
