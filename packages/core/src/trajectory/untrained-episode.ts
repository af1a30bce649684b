import type { Episode, StopReason } from '../protocol/episode.ts'
import type { UntrainedReason } from '../protocol/token-ledger.ts'

export interface UntrainedEpisodeOptions {
  /** An episode that ended at a limit is trained with the reward it got (default), or left out as `truncated-episode`. */
  readonly incompleteEpisodes?: 'train' | 'exclude' | undefined
  /** Whether an episode without a reward is left out as `not-scored` (default), or kept to be scored later. */
  readonly unscored?: 'exclude' | 'keep' | undefined
}

/** Ends that the policy caused itself: it wrote or called too much, or was cut off in the middle of its answer. */
export const causedByPolicy: ReadonlySet<StopReason> = new Set([
  'turn-limit',
  'token-limit',
  'tool-call-limit',
  'cost-limit',
  'context-overflow',
  'truncated',
])

/**
 * Reason why no token of an episode may be trained; `null` if it may. Every trainer distinguishes a failed episode from an answer by this
 * function.
 */
export function untrainedEpisode(
  { stopReason, reward, limitedSideBySide }: Pick<Episode, 'stopReason' | 'reward' | 'limitedSideBySide'>,
  { incompleteEpisodes = 'train', unscored = 'exclude' }: UntrainedEpisodeOptions = {},
): UntrainedReason | null {
  if (stopReason === 'cancelled') return 'cancelled-episode'
  if (stopReason === 'failed' || stopReason === 'no-model-call') return 'failed-episode'
  // A deadline says as much about the machine as about the policy.
  if (stopReason === 'time-limit' || limitedSideBySide) return 'truncated-episode'
  if (causedByPolicy.has(stopReason) && incompleteEpisodes === 'exclude') return 'truncated-episode'
  return reward === null && unscored === 'exclude' ? 'not-scored' : null
}
