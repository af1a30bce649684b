import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { LossDefinition, UpdateRequest } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engine-local'
import { createTinkerEngine } from '@aworld-train/engine-tinker'
import type { TrainingSample } from '@aworld-train/protocol'
import { afterAll, describe, expect, test } from 'vitest'
import { makeTinyFolder } from '../packages/engine-local/src/testing/tiny-model.ts'
import { openTinkerService } from './support/tinker-service.ts'

const folder = await makeTinyFolder()
afterAll(() => rm(dirname(folder.directory), { recursive: true }))

const rows = [
  [1, 2, 3, 4, 5, 6],
  [6, 5, 4, 3],
  [2, 4, 6, 2, 4, 6, 2, 4],
  [3, 3, 3],
]
/** Rows of unequal length, one of which trains nothing. */
const samples = rows.map((tokenIds, index): TrainingSample => {
  const at = <T>(values: (position: number) => T) => tokenIds.map((_, position) => values(position))
  return {
    version: 1,
    tokenIds: Int32Array.from(tokenIds),
    lossMask: Uint8Array.from(at((position) => Number(index < 3 && position > index))),
    rolloutLogprobs: Float32Array.from(at((position) => -3 - position / 4)),
    weightVersions: [{ fromToken: 0, version: 0 }],
    reward: 1,
    advantage: [1.5, -0.75, 0.25, 1][index]!,
    group: 'group',
    agent: 'agent',
    policy: 'policy',
    provenance: { rollout: `${index}`, attempt: 0, taskId: `${index}`, sample: 0, turns: [0] },
  }
})
const ppo = { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0 } as const
const losses: readonly LossDefinition[] = (['token-mean', 'sequence-mean'] as const).flatMap((aggregation) => [
  { ...ppo, aggregation },
  { kind: 'sft', aggregation },
])
// With a large epsilon a step is as long as its gradient, which Adam hides otherwise.
const optimizer = { learningRate: 0.5, betas: [0, 0], epsilon: 1, weightDecay: 0, maxGradNorm: 0 } as const

describe.each(['row-mean', 'sum'] as const)('an update by a service whose losses are added up as %s', (reduction) => {
  test.each(losses)('has the gradient of $kind, $aggregation', async (loss) => {
    const request: UpdateRequest = { samples, loss, optimizer }
    await using service = await openTinkerService(folder.directory, { reduction })
    const remote = await createTinkerEngine({ url: service.url, model: folder.directory, name: 'tiny', reduction })
    const local = await createLocalEngine({ model: folder.directory, threads: 1, simd: 'plain' })
    try {
      const [there, here] = [await remote.learner.update(request), await local.learner.update(request)]
      expect(there.gradNorm! / here.gradNorm!).toBeCloseTo(1, 4)
      expect(there.loss).toBeCloseTo(here.loss, 4)
      expect(there.clipFraction).toBeCloseTo(here.clipFraction, 10)
      expect(there.logprobs!.map(({ length }) => length)).toEqual(here.logprobs!.map(({ length }) => length))
      const ids = samples.map(({ tokenIds }) => tokenIds)
      const [after, expected] = [await remote.learner.logprobs(ids, 1), await local.learner.logprobs(ids, 1)]
      for (const [row, values] of after.entries())
        for (const [at, value] of values.entries()) expect(value).toBeCloseTo(expected[row]![at]!, 4)
      const step = service.calls.find(({ name }) => name === 'optim_step')
      expect(step?.json).toMatchObject({ adam_params: { learning_rate: 0.5, weight_decay: 0 } })
    } finally {
      await remote.close()
      await local.close()
    }
  })
})
