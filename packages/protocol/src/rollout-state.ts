import { z } from 'zod'
import { Episode, ErrorRecord } from './episode.ts'
import { TrainingSample } from './training-sample.ts'

/**
 * Where a submitted rollout stands. `done` has an episode, which may be one that failed; `failed` has none, because it could
 * not be kept. `interrupted` was running when the service ended. Those without an episode run again when they are submitted again.
 */
export const RolloutStatus = z.enum(['queued', 'running', 'done', 'cancelled', 'failed', 'interrupted'])
export type RolloutStatus = z.infer<typeof RolloutStatus>

/** What the rollout service says of one rollout. `id` is the key of its request. */
export const RolloutState = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  status: RolloutStatus,
  /** Only of a rollout that is `done`, and where it was asked for. */
  episode: Episode.nullable(),
  /** Training samples of the episode; their advantage is the trainer's to compute. */
  samples: z.array(TrainingSample),
  /** Why a rollout is `failed` or `cancelled`, or why the episode of one that is `done` gives no samples. */
  error: ErrorRecord.nullable(),
})
export type RolloutState = z.infer<typeof RolloutState>
