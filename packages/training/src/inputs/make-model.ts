import { join } from 'node:path'
import type { RunEvent, RunProgress } from '@aworld-train/core'
import { runWarmUp } from './warm-up.ts'

/** Name of the state with the duration of a warm-up in milliseconds. */
const stateOf = (policy: string | null) => (policy === null ? 'warm-up-finished' : `warm-up-finished-${policy}`)

export interface MakeModelContext {
  readonly emit: (event: RunEvent) => void
  readonly signal: AbortSignal
  readonly warmUpMs: { value: number }
}

export interface WarmUpPlan {
  /** `./file.ts#name`, relative to `configDirectory`. */
  readonly warmUp: string | null
  /** Name of the policy among several. Default: there is one. */
  readonly policy?: string | null | undefined
  readonly configDirectory: string
  readonly seed: number
  readonly engine: { readonly simd: 'auto' | 'plain' | 'relaxed'; readonly threads: number | null }
}

/** Makes the warm-up's model and keeps it in the run, so that a resumed run does not make it again. */
export async function makeModel(
  plan: WarmUpPlan,
  path: string,
  store: RunProgress,
  { emit, signal, warmUpMs }: MakeModelContext,
): Promise<string> {
  const { policy = null } = plan
  const directory = policy === null ? join(path, 'model') : join(path, 'models', policy)
  const madeInMs = store.getState(stateOf(policy)) as number | undefined
  if (madeInMs !== undefined) {
    warmUpMs.value += madeInMs
    return directory
  }
  const startedAt = Date.now()
  await runWarmUp(plan.warmUp as string, plan.configDirectory, {
    directory,
    seed: plan.seed,
    ...plan.engine,
    signal,
    onProgress: (done, total, metrics) =>
      emit({ type: 'phase-progress', at: Date.now(), phase: 'warm-up', done, total, metrics: { ...metrics } }),
  })
  const durationMs = Date.now() - startedAt
  warmUpMs.value += durationMs
  await store.setState(stateOf(policy), durationMs)
  return directory
}
