import type { Episode } from '../protocol/episode.ts'

/**
 * Whether an episode says nothing about its agent, because a worker, an engine, a service, the environment or the process of its reward
 * failed. It is no outcome: it runs again, also in a later process of the run, and counts in no number until then.
 */
export function isInfrastructureFailure({ stopReason, error }: Pick<Episode, 'stopReason' | 'error'>): boolean {
  return stopReason === 'failed' && (error?.retryable === true || error?.code === 'POLICY_WORKER_DIED')
}
