import { z } from 'zod'
import { Episode, ErrorRecord } from './episode.ts'
import { TrainingSample } from './training-sample.ts'

/**
 * Status of a submitted rollout. `done` has an episode, which may be a failed one. `failed` has none, because it could not be kept.
 * `interrupted` was running when the service ended. Rollouts without an episode run again when they are submitted again.
 */
export const RolloutStatus = z.enum(['queued', 'running', 'done', 'cancelled', 'failed', 'interrupted'])
export type RolloutStatus = z.infer<typeof RolloutStatus>

/** Report of the rollout service on one rollout. `id` is the key of its request. */
export const RolloutState = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  status: RolloutStatus,
  /** Present only if the rollout is `done` and the episode was asked for. */
  episode: Episode.nullable(),
  /** Training samples of the episode. The trainer computes their advantage. */
  samples: z.array(TrainingSample),
  /** Reason why a rollout is `failed` or `cancelled`, or why the episode of a `done` one gives no samples. */
  error: ErrorRecord.nullable(),
})
export type RolloutState = z.infer<typeof RolloutState>
