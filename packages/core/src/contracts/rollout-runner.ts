import type { Episode } from '../protocol/episode.ts'
import type { RolloutRequest } from '../protocol/rollout-request.ts'

/** Runs rollouts. Results are episodes, including failed ones. It rejects if the run stops or the policy is away. */
export interface RolloutRunner {
  run(request: RolloutRequest, signal: AbortSignal): Promise<Episode>
  /** Resolves in the order of `requests`. Where the reward sees groups, each group of the requests has its values. */
  runAll(requests: readonly RolloutRequest[], signal: AbortSignal): Promise<Episode[]>
  /**
   * Gives the episodes of a whole group the values of a reward that sees groups, and keeps them; those that were given earlier stay. Any other
   * reward changes nothing.
   */
  scoreGroup?(requests: readonly RolloutRequest[], episodes: readonly Episode[], signal: AbortSignal): Promise<readonly Episode[]>
  /** Number of rollouts that may run at once now, on all present workers. */
  slots?(): number
  /** Tokens sampled since the start in attempts that a new attempt replaced, by one policy or by all. No episode has them. */
  supersededTokens?(policy?: string): number
}
