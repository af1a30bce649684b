import type { Episode, RolloutRequest } from '@aworld-train/protocol'

/** Runs rollouts. Results are episodes, failed ones too; a stop of the run rejects, and a policy that is away. */
export interface RolloutRunner {
  run(request: RolloutRequest, signal: AbortSignal): Promise<Episode>
  /** Resolves in the order of `requests`. */
  runAll(requests: readonly RolloutRequest[], signal: AbortSignal): Promise<Episode[]>
  /** Rollouts that may run at once now, on all workers that are there. */
  slots?(): number
  /** Tokens sampled since the start in attempts that a new attempt replaced: they are in no episode. */
  supersededTokens?(): number
}
