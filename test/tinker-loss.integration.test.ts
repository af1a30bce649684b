import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { LossDefinition, TrainingSample, UpdateRequest } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engines/local'
import { createTinkerEngine } from '@aworld-train/engines/tinker'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { makeTinyFolder } from '../packages/engines/src/local/testing/tiny-model.ts'
import { openTinkerService } from './support/tinker-service.ts'

const folder = await makeTinyFolder()
afterAll(() => rm(dirname(folder.directory), { recursive: true }))

const rows = [
  [1, 2, 3, 4, 5, 6],
  [6, 5, 4, 3],
  [2, 4, 6, 2, 4, 6, 2, 4],
  [3, 3, 3],
]
const sampleOf = (tokenIds: readonly number[], change: Partial<TrainingSample> = {}): TrainingSample => ({
  version: 2,
  tokenIds: Int32Array.from(tokenIds),
  lossMask: Uint8Array.from(tokenIds, (_, at) => Number(at > 0)),
  rolloutLogprobs: Float32Array.from(tokenIds, (_, at) => -3 - at / 4),
  weightVersions: [{ fromToken: 0, version: 0 }],
  reward: 1,
  advantage: 1,
  group: 'group',
  agent: 'agent',
  trajectory: 'agent',
  policy: 'policy',
  provenance: { rollout: 'rollout', attempt: 0, taskId: 'task', sample: 0, turns: [0] },
  ...change,
})
/** Rows of unequal length, one of which trains nothing. */
const unequal = rows.map((tokenIds, index) =>
  sampleOf(tokenIds, {
    lossMask: Uint8Array.from(tokenIds, (_, at) => Number(index < 3 && at > index)),
    advantage: [1.5, -0.75, 0.25, 1][index]!,
  }),
)
const [long, short] = rows as [number[], number[]]
/** Equal rows whose advantages have both signs, whose masks and rollout logprobs differ, and one that begins them. */
const equal = [
  sampleOf(long, { advantage: 1.5 }),
  sampleOf(long, { advantage: 0.5 }),
  sampleOf(long, { advantage: -0.75 }),
  sampleOf(long, { advantage: 0.25, lossMask: Uint8Array.of(0, 0, 0, 1, 0, 1) }),
  sampleOf(long, { advantage: 0 }),
  sampleOf([...long, 2], { lossMask: Uint8Array.of(0, 0, 1, 1, 1, 1, 0) }),
  sampleOf(long, { lossMask: new Uint8Array(6) }),
  sampleOf(long.slice(0, 4)),
  sampleOf(short),
  sampleOf(short, { rolloutLogprobs: new Float32Array(4).fill(-3.5), advantage: 0.5 }),
]
const coefficientsOf = (samples: readonly TrainingSample[]) =>
  samples.map(({ tokenIds, advantage }) => Float32Array.from(tokenIds, (_, at) => (advantage! * (at - 1.5)) / 10))
const ppo = { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0 } as const
const kinds = ['ppo-clip', 'sft', 'linear'] as const
const cases = kinds.flatMap((kind) => (['token-mean', 'sequence-mean'] as const).map((aggregation) => ({ kind, aggregation })))
function lossOf({ kind, aggregation }: (typeof cases)[number], samples: readonly TrainingSample[]): LossDefinition {
  if (kind === 'sft') return { kind, aggregation }
  if (kind === 'ppo-clip') return { ...ppo, aggregation }
  return { kind, coefficients: coefficientsOf(samples), entropyCoefficient: 0, aggregation }
}
// With a large epsilon a step is as long as its gradient, which Adam hides otherwise.
const optimizer = { learningRate: 0.5, betas: [0, 0], epsilon: 1, weightDecay: 0, maxGradNorm: 0 } as const

describe.each(['row-mean', 'sum'] as const)('an update by a service whose losses are added up as %s', (reduction) => {
  async function open() {
    const service = await openTinkerService(folder.directory, { reduction })
    onTestFinished(() => service[Symbol.asyncDispose]())
    const remote = await createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny', reduction })
    onTestFinished(() => remote.close())
    return { service, remote }
  }

  test.each(cases)('has the gradient of $kind, $aggregation', async (each) => {
    const { service, remote } = await open()
    const local = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    onTestFinished(() => local.close())
    for (const samples of [unequal, equal]) {
      const ids = samples.map(({ tokenIds }) => tokenIds)
      const before = await local.learner.logprobs(ids, 1)
      const request: UpdateRequest = { samples, loss: lossOf(each, samples), optimizer }
      const [there, here] = [await remote.learner.update(request), await local.learner.update(request)]
      expect(there.gradNorm! / here.gradNorm!).toBeCloseTo(1, 4)
      expect(there.loss).toBeCloseTo(here.loss, 4)
      expect(there.clipFraction).toBeCloseTo(here.clipFraction, 10)
      expect(there.trainedTokens).toBe(here.trainedTokens)
      expectClose(there.logprobs!, here.logprobs!)
      const [after, expected] = [await remote.learner.logprobs(ids, 1), await local.learner.logprobs(ids, 1)]
      expectClose(after, expected)
      expect(
        Math.max(...expected.flatMap((row, at) => Array.from(row, (value, token) => Math.abs(value - before[at]![token]!)))),
      ).toBeGreaterThan(0.01)
    }
    const step = service.calls.find(({ name }) => name === 'optim_step')
    expect(step?.json).toMatchObject({ adam_params: { learning_rate: 0.5, weight_decay: 0 } })
  })

  test.each(cases)('sends rows of equal ids once where $kind, $aggregation, allows it', async (each) => {
    const { service, remote } = await open()
    await remote.learner.logprobs(
      equal.map(({ tokenIds }) => tokenIds),
      1,
    )
    const before = service.sent().rows
    await remote.learner.update({ samples: equal, loss: lossOf(each, equal), optimizer })
    const isCrossEntropy = each.kind === 'sft' && each.aggregation === 'sequence-mean'
    // A clip keeps advantages of either sign and other rollout logprobs apart, and a mean of rows cannot count a row twice.
    const gradient = each.kind === 'ppo-clip' ? 5 : reduction === 'row-mean' && isCrossEntropy ? 9 : 3
    expect(service.sent().rows - before).toBe(gradient)
  })
})

test('rows of equal ids are scored once, and their logprobs are arrays of their own', async () => {
  await using service = await openTinkerService(folder.directory)
  const { learner, close } = await createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny' })
  onTestFinished(close)
  const [first, alone, second] = await learner.logprobs(
    [rows[0]!, [1], rows[0]!].map((row) => Int32Array.from(row)),
    1,
  )
  expect(service.sent()).toEqual({ rows: 1, tokens: 5 })
  expect(second).toEqual(first)
  expect(alone).toEqual(new Float32Array(1))
  first!.fill(1)
  expect(second).not.toEqual(first)
})

test('a loss by its derivatives asks for the logprobs of rows again where an update came between', async () => {
  await using service = await openTinkerService(folder.directory)
  const { learner, close } = await createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny' })
  onTestFinished(close)
  const request = { samples: [sampleOf(long)], loss: lossOf({ kind: 'linear', aggregation: 'token-mean' }, [sampleOf(long)]), optimizer }
  const sent: number[] = []
  for (const call of [() => learner.logprobs([Int32Array.from(long)], 1), () => learner.update(request), () => learner.update(request)]) {
    await call()
    sent.push(service.sent().rows)
  }
  expect(sent).toEqual([1, 2, 4])
})

function expectClose(actual: readonly Float32Array[], expected: readonly Float32Array[]): void {
  expect(actual.map(({ length }) => length)).toEqual(expected.map(({ length }) => length))
  for (const [row, values] of actual.entries())
    for (const [at, value] of values.entries()) expect(value).toBeCloseTo(expected[row]![at]!, 4)
}
