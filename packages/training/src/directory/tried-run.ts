import { openTriedParts, type RolloutParts, type RolloutPartsPlan } from '../agent-side/rollout-parts.ts'
import type { PreflightPlan } from '../preflight/preflight.ts'
import type { RunOptions } from '../run-options.ts'
import { inRunDirectory, type RunDirectory, type RunDirectoryRequest } from './run-directory.ts'

/** Where a run is, how it is started, and what ends it. */
export interface RunRequest {
  readonly runPath: string
  readonly options: RunOptions
  readonly signal: AbortSignal
}

/** A run with its place, and what identifies it. */
export type TriedRunRequest = RunRequest & Pick<RunDirectoryRequest, 'kind' | 'name' | 'configurationHash' | 'inputs' | 'provenance'>

/**
 * Opens the parts of rollouts and tries each once, then starts or resumes the run and works in it as its owner. A new run that cannot start
 * leaves nothing.
 */
export async function inTriedRun<T>(
  plan: RolloutPartsPlan & PreflightPlan,
  request: TriedRunRequest,
  work: (run: RunDirectory, parts: RolloutParts) => Promise<T>,
): Promise<T> {
  await using stack = new AsyncDisposableStack()
  const parts = await openTriedParts(stack, plan, { signal: request.signal, onEvent: request.options.onEvent })
  return await inRunDirectory({ ...request, sandboxes: parts.environment.sandboxes() }, (run) => work(run, parts))
}
