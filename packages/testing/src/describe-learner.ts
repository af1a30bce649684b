import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  aggregateLoss,
  k3Divergence,
  type Learner,
  type LossDefinition,
  lossWeights,
  type OptimizerSettings,
  ppoClipGradient,
  ppoClipLoss,
  type TokenEngine,
  TrainError,
  type TrainingSample,
  type UpdateRequest,
} from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

/** A learner with fresh weights of its own, and the engine that samples its published weights. */
export interface LearnerUnderTest {
  readonly learner: Learner
  readonly engine: TokenEngine
  close(): Promise<void>
}

export interface DescribeLearnerOptions {
  readonly name: string
  /** Equal weights and a fresh optimiser at every call. The tests that do not change weights share one. */
  readonly create: () => Promise<LearnerUnderTest>
  /** A rate at which thirty updates over three short rows halve their loss. */
  readonly learningRate: number
  /** Largest absolute difference of logprobs and losses that count as equal. Default 1e-4. */
  readonly tolerance?: number | undefined
  /** Temperatures at which it scores tokens. Default: 1 and 0.6. */
  readonly temperatures?: readonly number[] | undefined
  /** Whether it has a term for the distance to a reference. A learner without it refuses that. Default true. */
  readonly divergence?: boolean | undefined
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[] | undefined
}

const sft = { kind: 'sft', aggregation: 'token-mean' } as const satisfies LossDefinition
const ppo = {
  kind: 'ppo-clip',
  clipLow: 0.2,
  clipHigh: 0.28,
  klCoefficient: 0,
  entropyCoefficient: 0,
  aggregation: 'token-mean',
} as const satisfies LossDefinition

/** The sum of coefficient * logprob. */
const linear = (coefficients: readonly Float32Array[]): LossDefinition => ({
  kind: 'linear',
  coefficients,
  entropyCoefficient: 0,
  aggregation: 'token-mean',
})

/** A row of a rollout. `lossMask` is 1 from the third token on, unless it is given. */
function toSample(tokenIds: readonly number[], change: Partial<TrainingSample> = {}): TrainingSample {
  return {
    version: 2,
    tokenIds: Int32Array.from(tokenIds),
    lossMask: Uint8Array.from(tokenIds, (_, index) => (index < 2 ? 0 : 1)),
    rolloutLogprobs: new Float32Array(tokenIds.length),
    weightVersions: [{ fromToken: 0, version: 0 }],
    reward: 1,
    advantage: 1,
    group: 'group',
    agent: 'agent',
    trajectory: 'agent',
    policy: 'policy',
    provenance: { rollout: 'rollout', attempt: 0, taskId: 'task', sample: 0, turns: [0] },
    ...change,
  }
}

const rows = [
  [1, 2, 3, 4, 5, 6],
  [6, 5, 4, 3],
  [2, 4, 6, 2, 4, 6, 2, 4],
]
const tokenRows = rows.map((row) => Int32Array.from(row))
const masks = rows.map((row) => toSample(row).lossMask)
const sum = (values: ArrayLike<number>) => Array.from(values).reduce((total, value) => total + value, 0)

/**
 * The tests that every Learner passes, on which the self-driven loop, its checkpoints and the ledger rely. Ids 1 to 6 must be in the
 * vocabulary.
 */
export function describeLearner(options: DescribeLearnerOptions): void {
  const { name, create, learningRate, tolerance = 1e-4, temperatures = [1, 0.6], divergence = true, skip = [] } = options
  const reasons = new Map(skip.flatMap(({ reason, tests }) => tests.map((title) => [title, reason] as const)))
  const optimizer: OptimizerSettings = { learningRate, betas: [0.9, 0.98], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 }
  /** Shows an update's metrics without moving the weights. */
  const still: OptimizerSettings = { ...optimizer, learningRate: 0 }
  const request = (change: Partial<UpdateRequest> = {}): UpdateRequest => ({
    samples: rows.map((row) => toSample(row)),
    loss: sft,
    optimizer,
    ...change,
  })
  let shared: LearnerUnderTest

  const exam = (title: string, run: () => Promise<void>) =>
    test(title, async (context) => {
      const reason = reasons.get(title)
      if (reason !== undefined) return context.skip(reason)
      await run()
    })
  /** A learner of the test's own, whose weights it may change. */
  async function fresh(): Promise<LearnerUnderTest> {
    const made = await create()
    onTestFinished(() => made.close())
    return made
  }
  async function checkpointFolder(): Promise<string> {
    const parent = await mkdtemp(join(tmpdir(), 'learner-'))
    onTestFinished(() => rm(parent, { recursive: true, force: true }))
    return join(parent, 'checkpoint')
  }

  /** Samples with ratios on both sides of both clips, and advantages of both signs. */
  function toClippedSamples(now: readonly Float32Array[]): TrainingSample[] {
    const ratios = [1, 0.5, 1.1, 2, 0.9, 1.5, 0.7, 1.2]
    return rows.map((row, index) =>
      toSample(row, {
        rolloutLogprobs: now[index]!.map((logprob, at) => logprob - Math.log(ratios[at]!)),
        advantage: index === 1 ? -0.5 : 1,
      }),
    )
  }

  function expectNear(actual: readonly Float32Array[], expected: readonly Float32Array[]): void {
    const differences = actual.flatMap((row, index) => Array.from(row, (value, at) => Math.abs(value - expected[index]![at]!)))
    expect(actual.map(({ length }) => length)).toEqual(expected.map(({ length }) => length))
    expect(Math.max(...differences)).toBeLessThanOrEqual(tolerance)
  }
  const expectLoss = (actual: number, expected: number) => expect(Math.abs(actual - expected)).toBeLessThanOrEqual(tolerance)

  describe(`learner: ${name}`, () => {
    beforeAll(async () => {
      shared = await create()
    })
    afterAll(() => shared?.close())

    exam('hands over the logprobs that its loss had, where it keeps them', async () => {
      const { learner } = shared
      const before = await learner.logprobs(tokenRows, 1)
      const { logprobs } = await learner.update(request({ optimizer: still }))
      if (!logprobs) return
      expectNear(
        logprobs,
        before.map((row, index) => row.filter((_, at) => masks[index]![at] === 1)),
      )
    })

    exam('recomputes one logprob a token, 0 at the first, the same alone and among other rows', async () => {
      const { learner } = shared
      const together = await learner.logprobs(tokenRows, 1)
      for (const [index, row] of together.entries()) {
        expect(row).toBeInstanceOf(Float32Array)
        expect(row.length).toBe(tokenRows[index]!.length)
        expect(row[0]).toBe(0)
        for (const value of row.slice(1)) expect(value < 0 && Number.isFinite(value)).toBe(true)
      }
      for (const [index, row] of tokenRows.entries()) expectNear(await learner.logprobs([row], 1), [together[index]!])
      expect(await learner.logprobs([], 1)).toEqual([])
    })

    exam('recomputes what the engine sampled, at the temperature it sampled with', async () => {
      const { learner, engine } = shared
      for (const temperature of temperatures) {
        const sampling = { temperature, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0 }
        const random = { seed: 7, task: 'learner', sample: 0, turn: 0 }
        const promptTokenIds = tokenRows[0]!
        const { tokenIds, logprobs } = await engine.generate(
          { promptTokenIds, sampling, random, affinity: 'learner' },
          new AbortController().signal,
        )
        const [row] = await learner.logprobs([Int32Array.of(...promptTokenIds, ...tokenIds)], temperature)
        expectNear([row!.slice(promptTokenIds.length)], [logprobs])
      }
    })

    exam('has the loss of supervised rows, by tokens and by rows', async () => {
      const { learner } = shared
      const losses = (await learner.logprobs(tokenRows, 1)).map((row) => row.map((logprob) => -logprob))
      for (const aggregation of ['token-mean', 'sequence-mean'] as const) {
        const { loss, trainedTokens } = await learner.update(request({ loss: { ...sft, aggregation }, optimizer: still }))
        expectLoss(loss, aggregateLoss(losses, masks, aggregation))
        expect(trainedTokens).toBe(sum(masks.map(sum)))
      }
    })

    exam('has the clipped loss of core, with the share of tokens that the clip stops', async () => {
      const { learner } = shared
      const now = await learner.logprobs(tokenRows, 1)
      const samples = toClippedSamples(now)
      const losses = samples.map(({ rolloutLogprobs, advantage }, index) =>
        now[index]!.map((logprob, at) => ppoClipLoss(logprob, rolloutLogprobs[at]!, advantage!, ppo)),
      )
      for (const aggregation of ['token-mean', 'sequence-mean'] as const) {
        const metrics = await learner.update(request({ samples, loss: { ...ppo, aggregation }, optimizer: still }))
        expectLoss(metrics.loss, aggregateLoss(losses, masks, aggregation))
        expect(metrics.clipFraction).toBeGreaterThan(0)
        expect(metrics.clipFraction).toBeLessThan(1)
      }
    })

    exam(`${divergence ? 'adds' : 'refuses'} the distance to the reference, by its coefficient`, async () => {
      const { learner } = shared
      const now = await learner.logprobs(tokenRows, 1)
      const samples = rows.map((row, index) => toSample(row, { rolloutLogprobs: now[index]! }))
      const referenceLogprobs = now.map((row) => row.map((logprob) => logprob - 0.3))
      if (!divergence) {
        const distant = request({ samples, loss: { ...ppo, klCoefficient: 0.5 }, referenceLogprobs })
        return await expect(learner.update(distant)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
      }
      const distance = k3Divergence(0, -0.3)
      const plain = await learner.update(request({ samples, loss: ppo, optimizer: still }))
      const metrics = await learner.update(request({ samples, loss: { ...ppo, klCoefficient: 0.5 }, optimizer: still, referenceLogprobs }))
      expectLoss(metrics.kl, distance)
      expectLoss(metrics.loss - plain.loss, 0.5 * distance)
    })

    exam('has the gradient of a loss by the derivatives of it, which it reads where the loss mask is 1', async () => {
      const derivatives = (now: readonly Float32Array[], samples: readonly TrainingSample[], loss: typeof ppo | typeof sft) => {
        const weights = lossWeights(samples, loss.aggregation)
        return samples.map(({ lossMask, rolloutLogprobs, advantage }, index) =>
          Float32Array.from(lossMask, (bit, at) => {
            if (bit === 0) return Number.NaN
            const slope = loss.kind === 'sft' ? -1 : ppoClipGradient(now[index]![at]!, rolloutLogprobs[at]!, advantage!, loss)
            return slope * weights[index]!
          }),
        )
      }
      // With a large epsilon a step is as long as its gradient, which Adam hides otherwise.
      const plain = { ...optimizer, epsilon: 1, learningRate: 100 * learningRate }
      const [{ learner }, { learner: other }] = [await fresh(), await fresh()]
      let before = await learner.logprobs(tokenRows, 1)
      for (const loss of [ppo, sft]) {
        const samples = toClippedSamples(before)
        await learner.update(request({ samples, loss, optimizer: plain }))
        const coefficients = derivatives(before, samples, loss)
        const metrics = await other.update(request({ samples, loss: linear(coefficients), optimizer: plain }))
        const sums = before.map((row, index) =>
          sum(row.map((logprob, at) => (masks[index]![at] === 1 ? logprob * coefficients[index]![at]! : 0))),
        )
        expectLoss(metrics.loss, sum(sums))
        expect(metrics.clipFraction).toBe(0)
        expect(metrics.trainedTokens).toBe(sum(masks.map(sum)))
        const after = await learner.logprobs(tokenRows, 1)
        expectNear(await other.logprobs(tokenRows, 1), after)
        expect(Math.abs(sum(after.map(sum)) - sum(before.map(sum)))).toBeGreaterThan(20 * tolerance)
        before = after
      }
    })

    exam('moves no weight by derivatives of 0', async () => {
      const { learner } = await fresh()
      const before = await learner.logprobs(tokenRows, 1)
      const { loss, trainedTokens } = await learner.update(request({ loss: linear(rows.map(({ length }) => new Float32Array(length))) }))
      expect(Math.abs(loss)).toBe(0)
      expect(trainedTokens).toBe(sum(masks.map(sum)))
      expectNear(await learner.logprobs(tokenRows, 1), before)
    })

    exam('learns what it is shown', async () => {
      const { learner } = await fresh()
      const first = await learner.update(request())
      for (let update = 0; update < 30; update++) await learner.update(request())
      const last = await learner.update(request())
      expect(first.gradNorm ?? 1, 'a norm that is reported').toBeGreaterThan(0)
      expect(last.loss).toBeLessThan(first.loss / 2)
    })

    exam('makes a row with an advantage likelier, and one with a disadvantage less likely', async () => {
      const { learner } = await fresh()
      const pair = tokenRows.slice(0, 2)
      const before = await learner.logprobs(pair, 1)
      const samples = [1, -1].map((advantage, index) => toSample(rows[index]!, { advantage, rolloutLogprobs: before[index]! }))
      await learner.update(request({ samples, loss: ppo }))
      const [good, bad] = await learner.logprobs(pair, 1)
      expect(sum(good!.slice(2))).toBeGreaterThan(sum(before[0]!.slice(2)))
      expect(sum(bad!.slice(2))).toBeLessThan(sum(before[1]!.slice(2)))
    })

    exam('trains nothing where the loss mask is 0', async () => {
      const { learner } = await fresh()
      const { learner: other } = await fresh()
      const rest = [1, 3, 5]
      const metrics = await learner.update(request())
      const lossMask = Uint8Array.from([...masks[0]!, 0, 0, 0])
      const samples = [toSample([...rows[0]!, ...rest], { lossMask }), ...rows.slice(1).map((row) => toSample(row))]
      const masked = await other.update(request({ samples: [...samples, toSample(rest, { lossMask: new Uint8Array(3) })] }))
      expect(masked.trainedTokens).toBe(metrics.trainedTokens)
      expectLoss(masked.loss, metrics.loss)
      expectNear(await other.logprobs(tokenRows, 1), await learner.logprobs(tokenRows, 1))
    })

    exam('is served in the order of the calls', async () => {
      const { learner } = await fresh()
      const { learner: other } = await fresh()
      const [, between, , after] = await Promise.all([
        learner.update(request()),
        learner.logprobs(tokenRows, 1),
        learner.update(request()),
        learner.logprobs(tokenRows, 1),
      ])
      await other.update(request())
      expectNear(between, await other.logprobs(tokenRows, 1))
      await other.update(request())
      expectNear(after, await other.logprobs(tokenRows, 1))
    })

    exam('samples with new weights after they were published, not before', async () => {
      const { learner, engine } = await fresh()
      const promptTokenIds = tokenRows[0]!
      const greedy = async () => {
        const { tokenIds, logprobs } = await engine.generate(
          {
            promptTokenIds,
            sampling: { temperature: 0, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 },
            random: { seed: 7, task: 'learner', sample: 0, turn: 0 },
            affinity: 'learner',
          },
          new AbortController().signal,
        )
        const [row] = await learner.logprobs([Int32Array.of(...promptTokenIds, ...tokenIds)], 1)
        return { tokenIds, logprobs, recomputed: row!.slice(promptTokenIds.length) }
      }
      const before = await greedy()
      for (let update = 0; update < 5; update++) await learner.update(request())
      const unpublished = await greedy()
      expect(unpublished.tokenIds).toEqual(before.tokenIds)
      expectNear([unpublished.logprobs], [before.logprobs])
      const version = engine.weightVersion()
      expect(await learner.publish()).toBeGreaterThan(version)
      expect(engine.weightVersion()).toBeGreaterThan(version)
      const published = await greedy()
      expectNear([published.logprobs], [published.recomputed])
      expect(Math.abs(sum(published.logprobs) - sum(before.logprobs))).toBeGreaterThan(tolerance)
    })

    exam('goes on from a checkpoint as if nothing had come between', async () => {
      const { learner } = await fresh()
      const directory = await checkpointFolder()
      await learner.update(request())
      await learner.save(directory)
      expect((await readdir(directory)).length).toBeGreaterThan(0)
      const saved = await learner.logprobs(tokenRows, 1)
      await learner.update(request())
      const next = await learner.logprobs(tokenRows, 1)
      const { learner: restarted } = await fresh()
      await restarted.load(directory)
      expectNear(await restarted.logprobs(tokenRows, 1), saved)
      await restarted.update(request())
      expectNear(await restarted.logprobs(tokenRows, 1), next)
    })

    exam('takes a checkpoint over only if the others agree', async () => {
      const { learner } = await fresh()
      const { learner: other } = await fresh()
      const directory = await checkpointFolder()
      await learner.save(directory)
      for (const each of [learner, other]) await each.update(request())
      const before = await learner.logprobs(tokenRows, 1)
      const refused = learner.load(directory, () => Promise.reject(new TrainError('CHECKPOINT_CORRUPT', 'another cannot be read')))
      await expect(refused).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT', message: 'another cannot be read' })
      expectNear(await learner.logprobs(tokenRows, 1), before)
      for (const each of [learner, other]) await each.update(request())
      const [now, then] = await Promise.all([learner, other].map((each) => each.logprobs(tokenRows, 1)))
      expectNear(now!, then!)
    })

    exam('forgets its moments, and no weights, when its optimiser is reset', async () => {
      const { learner } = await fresh()
      const { learner: other } = await fresh()
      const directory = await checkpointFolder()
      await learner.update(request())
      await learner.save(directory)
      await learner.resetOptimizer()
      const { learner: restarted } = await fresh()
      await restarted.load(directory)
      await restarted.resetOptimizer()
      await other.load(directory)
      for (const each of [learner, restarted, other]) await each.update(request({ samples: [toSample([6, 1, 6, 1, 6, 1])] }))
      const [now, then, kept] = await Promise.all([learner, restarted, other].map((each) => each.logprobs(tokenRows, 1)))
      expectNear(now!, then!)
      const difference = sum(now!.map(sum)) - sum(kept!.map(sum))
      expect(Math.abs(difference)).toBeGreaterThan(tolerance)
    })

    exam('refuses numbers that are not finite, and keeps its weights', async () => {
      const { learner } = shared
      const before = await learner.logprobs(tokenRows, 1)
      for (const change of [{ advantage: Number.NaN }, { rolloutLogprobs: new Float32Array(rows[0]!.length).fill(Number.NaN) }]) {
        const samples = [toSample(rows[0]!, change), ...rows.slice(1).map((row) => toSample(row))]
        await expect(learner.update(request({ samples, loss: ppo }))).rejects.toMatchObject({ code: 'TRAINER_NOT_FINITE' })
      }
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const loss = linear(rows.map(({ length }) => new Float32Array(length).fill(value)))
        await expect(learner.update(request({ loss }))).rejects.toMatchObject({ code: 'TRAINER_NOT_FINITE' })
      }
      expectNear(await learner.logprobs(tokenRows, 1), before)
    })

    exam('refuses a batch that trains nothing, rows that the model cannot hold, and a loss without what it needs', async () => {
      const { learner, engine } = shared
      const before = await learner.logprobs(tokenRows, 1)
      const { contextLength, vocabularySize } = engine.model
      const refused: readonly (readonly [Partial<UpdateRequest>, string])[] = [
        [{ samples: [] }, 'TRAINER_EMPTY_BATCH'],
        [{ samples: [toSample(rows[0]!, { lossMask: new Uint8Array(rows[0]!.length) })] }, 'TRAINER_EMPTY_BATCH'],
        [{ samples: [toSample(new Array<number>(contextLength + 1).fill(1))] }, 'POLICY_CONTEXT_OVERFLOW'],
        [{ samples: [toSample([1, 2, vocabularySize])] }, 'TRAINER_SAMPLE_INVALID'],
        [{ samples: [toSample(rows[0]!, { advantage: null })], loss: ppo }, 'TRAINER_SAMPLE_INVALID'],
        [{ samples: [toSample(rows[0]!, { lossMask: Uint8Array.of(0, 1) })] }, 'TRAINER_SAMPLE_INVALID'],
        [{ loss: { ...ppo, klCoefficient: 0.1 } }, 'CONFIG_INVALID'],
        [{ loss: linear([]) }, 'TRAINER_SAMPLE_INVALID'],
        [{ loss: linear(rows.map(({ length }, index) => new Float32Array(length - Number(index === 1)))) }, 'TRAINER_SAMPLE_INVALID'],
        [{ loss: { kind: 'dpo' } as unknown as LossDefinition }, 'CONFIG_INVALID'],
      ]
      for (const [change, code] of refused) {
        await expect(learner.update(request(change)), `${code} of ${JSON.stringify(change).slice(0, 80)}`).rejects.toMatchObject({ code })
      }
      expectNear(await learner.logprobs(tokenRows, 1), before)
    })
  })
}
