import type { RolloutRunner } from '../contracts/rollout-runner.ts'
import type { Episode } from '../protocol/episode.ts'
import type { RolloutRequest } from '../protocol/rollout-request.ts'

/**
 * Runs all `requests` at once and resolves in their order. When one rejects, the others are stopped and waited for; then this rejects with
 * its error.
 */
export async function runAll(run: RolloutRunner['run'], requests: readonly RolloutRequest[], signal: AbortSignal): Promise<Episode[]> {
  const others = new AbortController()
  const all = AbortSignal.any([signal, others.signal])
  const runs = requests.map((request) =>
    run(request, all).catch((error: unknown) => {
      others.abort(error)
      throw error
    }),
  )
  await Promise.allSettled(runs)
  if (others.signal.aborted) throw others.signal.reason
  return Promise.all(runs)
}
