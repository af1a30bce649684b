import type { Learner, OptimizerSettings, TrainingSample } from '@aworld-train/core'
import { loadKernels, type SimdTier } from '../kernels/load-kernels.ts'
import type { LayoutOptions } from '../layout.ts'
import { createLearner } from '../learner/learner.ts'
import type { ModelConfig } from '../model-config.ts'
import { createPool, type Pool } from '../pool/pool.ts'
import { tinyShape } from '../testing/tiny-model.ts'
import { goldenParameters } from './goldens.ts'

/** A small shape that most tests share. `change` replaces parts of it. */
export function smallModel(change: Partial<ModelConfig> = {}): ModelConfig {
  return { vocabularySize: 37, ...tinyShape, ...change }
}

export interface Trainer {
  readonly pool: Pool
  readonly learner: Learner
  parameters(): Float32Array
  setParameters(values: Float32Array): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface TrainerOptions extends Partial<Omit<LayoutOptions, 'model'>> {
  readonly model: ModelConfig
  readonly tier?: SimdTier
  readonly seed?: number
}

/** A real pool and learner over fixed parameters, without checkpoints and sampling. */
export async function createTrainer({ model, tier = 'plain', seed = 7, ...options }: TrainerOptions): Promise<Trainer> {
  const pool = await createPool({
    kernels: await loadKernels(tier),
    layout: {
      model,
      threads: 2,
      shards: 4,
      microBatchTokens: 32,
      batchTokens: 4_096,
      batchRows: 256,
      sampling: { rows: 2, stepTokens: 8 },
      ...options,
    },
  })
  const { layout, views } = pool
  const unsupported = (): Promise<never> => Promise.reject(new Error('This trainer has no files and does not sample.'))
  const start = layout.parameters / 4
  const trainer: Trainer = {
    pool,
    learner: createLearner(pool, { publish: unsupported, save: unsupported, load: unsupported }),
    parameters: () => views.f32.slice(start, start + layout.table.count),
    setParameters: async (values) => {
      views.f32.set(values, start)
      await pool.run('pack')
    },
    [Symbol.asyncDispose]: () => pool.close(),
  }
  await trainer.setParameters(goldenParameters(layout.table, seed))
  return trainer
}

/** Optimiser settings under which an update does not change the weights, and the first moment is the gradient itself. */
export const gradientOnly: OptimizerSettings = { learningRate: 0, betas: [0, 0], epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 }

/** The gradient of the last update under `gradientOnly`. */
export function lastGradient({ pool }: Trainer): Float32Array {
  const { firstMoment, table } = pool.layout
  return pool.views.f32.slice(firstMoment / 4, firstMoment / 4 + table.count)
}

export interface SampleInput {
  readonly tokenIds: Int32Array
  readonly lossMask?: Uint8Array
  readonly rolloutLogprobs?: Float32Array
  readonly advantage?: number | null
}

/** A training sample of which only the arrays matter. By default all but the first token are trained. */
export function toSample(input: SampleInput, index = 0): TrainingSample {
  const { tokenIds, advantage = 1 } = input
  return {
    version: 2,
    tokenIds,
    lossMask: input.lossMask ?? Uint8Array.from(tokenIds, (_, i) => (i === 0 ? 0 : 1)),
    rolloutLogprobs: input.rolloutLogprobs ?? new Float32Array(tokenIds.length),
    weightVersions: [],
    reward: 0,
    advantage,
    group: 'group',
    agent: 'agent',
    trajectory: 'agent',
    policy: 'policy',
    provenance: { rollout: `rollout-${index}`, attempt: 0, taskId: `task-${index}`, sample: 0, turns: [0] },
  }
}

/** Rows of tokens from `next`, one for each length. */
export function randomRows(next: () => number, lengths: readonly number[], vocabularySize: number): Int32Array[] {
  return lengths.map((length) => Int32Array.from({ length }, () => Math.floor(next() * vocabularySize)))
}

/** Rows of at most `longest` tokens of three kinds. They branch from each other, and some are copies or prefixes of others. */
export function randomTree(next: () => number, count: number, longest: number): Int32Array[] {
  const rows: Int32Array[] = []
  for (let i = 0; i < count; i++) {
    const parent = rows[Math.floor(next() * rows.length)] ?? new Int32Array(0)
    const kept = next() < 0.15 ? parent.length : Math.floor(next() * (parent.length + 1))
    const isCopy = kept > 0 && next() < 0.2
    const added = isCopy ? 0 : 1 + Math.floor(next() * Math.max(1, longest - kept - 1))
    const length = Math.max(1, Math.min(longest, kept + added))
    rows.push(Int32Array.from({ length }, (_, at) => (at < kept ? parent[at]! : Math.floor(next() * 3))))
  }
  return rows
}
