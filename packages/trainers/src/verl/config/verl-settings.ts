import { TrainerSettings } from '@aworld-train/training'
import { z } from 'zod'

const count = z.int().min(1)

/** The GPUs that sample and those that train. */
export const VerlLayout = z.strictObject({
  mode: z
    .enum(['hybrid', 'colocated', 'standalone'])
    .default('hybrid')
    .describe(
      'GPUs that sample: `hybrid` takes those that train, in turns; `standalone` takes replicas of their own; `colocated` takes both, those that train while they are idle.',
    ),
  trainer: z
    .strictObject({
      nodes: count.default(1).describe('Nodes that train.'),
      gpus: count.default(1).describe('GPUs that train, on each node.'),
    })
    .prefault({}),
  rollout: z
    .strictObject({
      nodes: count.default(1).describe('Nodes of the replicas that sample. `hybrid` has none of its own.'),
      gpus: count.default(1).describe('GPUs that sample, on each of these nodes.'),
      tensorParallel: count.default(1).describe('GPUs that share one copy of the model while it samples. It divides the GPUs of a node.'),
    })
    .prefault({}),
  schedule: z
    .enum(['sync', 'colocate_async', 'separate_async'])
    .nullable()
    .default(null)
    .describe(
      '`sync` waits for a batch and trains on it; the others sample the next batch meanwhile. `hybrid` takes `sync` or `colocate_async`, the other modes `separate_async`. `null` takes the first that the mode allows.',
    ),
  syncEvery: count.default(4).describe('Updates between two transfers of weights to the replicas, with `separate_async`.'),
  staleness: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe(
      "Weight versions that a sample may be behind when it is trained. verl drops older ones. `null` leaves verl's own limit, which is 7.",
    ),
  transfer: z
    .enum(['nccl', 'nixl', 'mooncake', 'kimi_ckpt_engine', 'hccl'])
    .default('nccl')
    .describe('How weights travel to replicas of their own.'),
})
export type VerlLayout = z.infer<typeof VerlLayout>

/** Our side of a run with verl. */
export const VerlSettings = TrainerSettings.extend({
  layout: VerlLayout.nullable()
    .default(null)
    .describe("Which GPUs sample and which train. `null`, where you set none of its keys, leaves that to verl's own keys."),
  group: z
    .strictObject({
      replaceFailed: z
        .boolean()
        .default(true)
        .describe('`true` replaces a group with a failed rollout as a whole. `false` trains the rollouts that are left.'),
      maxReplaced: count
        .nullable()
        .default(null)
        .describe(
          'Groups that may be replaced while one batch is gathered. The run then ends with `TRAINER_EMPTY_BATCH`. `null` allows four times the prompts of a batch, and at least 16.',
        ),
      pollSeconds: z.number().gt(0).default(0.5).describe('Time between two looks at the groups that are ready, in seconds.'),
    })
    .prefault({})
    .describe('What becomes of groups with failed rollouts.'),
  smoke: z.boolean().default(false).describe('`true` trains without GPUs, on the processor. It tries the path and is not meant for speed.'),
})
export type VerlSettings = z.infer<typeof VerlSettings>
