import { EvaluationSettings, FrozenModelSettings, LimitSettings, LocalConfig } from '@aworld-train/training'
import { z } from 'zod'

const count = z.int().min(1)
const ms = z.int().min(1)

/**
 * Where rollouts are sampled: `hybrid` on the GPUs that train, `standalone` on GPUs of their own, `colocated` on both, the
 * GPUs that train going over to sampling while they are idle.
 */
export const VerlLayout = z.strictObject({
  mode: z.enum(['hybrid', 'colocated', 'standalone']).default('hybrid'),
  trainer: z.strictObject({ nodes: count.default(1), gpus: count.default(1) }).prefault({}),
  /** Replicas of their own: nodes and GPUs on each; for `hybrid` only `tensorParallel` means something. */
  rollout: z.strictObject({ nodes: count.default(1), gpus: count.default(1), tensorParallel: count.default(1) }).prefault({}),
  /** `null` for the first schedule that the mode allows. */
  schedule: z.enum(['sync', 'colocate_async', 'separate_async']).nullable().default(null),
  /** Updates between two weight syncs; for `separate_async`. */
  syncEvery: count.default(4),
  /** Weight versions that a sample may be behind when it is trained; `null` leaves verl's, which is 7. */
  staleness: z.int().min(0).nullable().default(null),
  /** How weights travel to standalone replicas. */
  transfer: z.enum(['nccl', 'nixl', 'mooncake', 'kimi_ckpt_engine', 'hccl']).default('nccl'),
})
export type VerlLayout = z.infer<typeof VerlLayout>

/** Our side of a run with verl: the block `aworldTrain` of a configuration. */
export const VerlSettings = z.strictObject({
  /** Which rows of a rollout with several conversations are trained. */
  rows: z.enum(['all', 'last', 'longest']).default('all'),
  /** Rollouts at once; verl launches whole batches, the rest queue. */
  concurrency: count.default(64),
  limits: LimitSettings.prefault({}),
  /** From the start of a rollout, not from when it was queued. */
  rolloutTimeoutMs: ms.default(1_200_000),
  /** How long verl and its rollouts may be silent before verl is ended. `null`: 30 minutes, or ten more than a rollout may take. */
  watchdogTimeoutMs: ms.nullable().default(null),
  /** How long a lost connection keeps its rollouts. */
  graceMs: ms.default(30_000),
  reward: LocalConfig.shape.reward
    .unwrap()
    .extend({
      /** Whether verl scores, so that episodes have no reward here. */
      native: z.boolean().default(false),
    })
    .prefault({}),
  /** Models that are not trained, by the name that agents ask for. */
  models: z.record(z.string().min(1), FrozenModelSettings).default({}),
  /** How earlier turns are rendered, and the variables of every rendering. */
  model: LocalConfig.shape.model,
  data: LocalConfig.shape.data,
  /** Tokens of one completion; `null`: what is left of `data.max_response_length`. */
  maxCompletionTokens: count.nullable().default(null),
  evaluation: EvaluationSettings.prefault({}),
  incompleteEpisodes: z.enum(['train', 'exclude']).default('train'),
  logprobCheck: z.strictObject({ tolerance: z.number().gt(0).default(1e-4) }).prefault({}),
  seed: z.int().min(0).default(1),
  /** Python that verl is installed in; `null`: found by itself. */
  python: z.string().min(1).nullable().default(null),
  layout: VerlLayout.nullable().default(null),
  group: z
    .strictObject({
      /** A group with a failed rollout is replaced as a whole; else the survivors are trained. */
      replaceFailed: z.boolean().default(true),
      /** Groups replaced while one batch is gathered before the run ends with an error; `null`: four times its prompts, at least 16. */
      maxReplaced: count.nullable().default(null),
      pollSeconds: z.number().gt(0).default(0.5),
    })
    .prefault({}),
  /** Settings for a run without GPUs: for tests of the path, not of speed. */
  smoke: z.boolean().default(false),
})
export type VerlSettings = z.infer<typeof VerlSettings>

const minuteMs = 60_000

/** After how long a silence verl is ended, in milliseconds. */
export function watchdogTimeoutMs({ watchdogTimeoutMs: set, rolloutTimeoutMs, limits }: VerlSettings): number {
  return set ?? Math.max(30 * minuteMs, (limits.timeoutMs ?? rolloutTimeoutMs) + 10 * minuteMs)
}
