import { DrivenSettings } from '@aworld-train/training'
import { z } from 'zod'

const count = z.int().min(1)

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
export const VerlSettings = DrivenSettings.extend({
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
