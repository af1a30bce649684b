import type { Episode } from '../protocol/episode.ts'
import type { FailureCount } from '../protocol/report-parts.ts'
import { untrainedEpisode } from './untrained-episode.ts'

/** The end of a rollout. `stopReason` replaces the code of one that has no error. */
export type EndedRollout = Pick<Episode, 'rollout' | 'reward' | 'stopReason' | 'error'> & { readonly turns: number }

export const toEndedRollout = ({
  rollout,
  reward,
  stopReason,
  error,
  trajectories,
}: Pick<Episode, 'rollout' | 'reward' | 'stopReason' | 'error'> & {
  readonly trajectories: readonly { readonly turns: readonly unknown[] }[]
}): EndedRollout => ({
  rollout,
  reward,
  stopReason,
  ...(error && { error }),
  turns: trajectories.reduce((sum, { turns }) => sum + turns.length, 0),
})

/** Whether a rollout says nothing about the policy: it failed, or its prompt left the policy no room for a turn. */
export const isFailed = (ended: Omit<EndedRollout, 'rollout' | 'error'>): boolean =>
  untrainedEpisode(ended, { unscored: 'keep' }) !== null || (ended.reward === null && ended.turns === 0)

/** Whether a rollout ended without a reward because its reward abstained or leaves out its kind of end. It is in no mean. */
export const isUnscored = (ended: Omit<EndedRollout, 'rollout' | 'error'>): boolean => ended.reward === null && !isFailed(ended)

/**
 * Reasons for the failures of rollouts, the most frequent first. Failures with equal code and equal line of the user's code are counted
 * together.
 */
export function countFailures(rollouts: Iterable<EndedRollout>): FailureCount[] {
  const counts = new Map<string, FailureCount>()
  for (const ended of rollouts) {
    if (!isFailed(ended)) continue
    const { rollout, error, stopReason } = ended
    const { code = stopReason, message = `It ended as ${stopReason}.`, source = null } = error ?? {}
    const key = `${code} ${source}`
    counts.set(key, { ...(counts.get(key) ?? { code, rollout, message, source }), count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()].sort((a, b) => b.count - a.count)
}

/** A line for people: the count, the code, the place in the user's code, and the first rollout with its message. */
export const describeFailure = ({ code, count, rollout, message, source }: FailureCount): string =>
  `${count} of ${code}${source === null ? '' : ` at ${source}`}, first ${rollout}: ${message}`
