import { join } from 'node:path'
import type { RunEvent, RunProgress } from '@aworld-train/core'
import { runWarmUp } from './warm-up.ts'

/** Name of the file with the duration of the warm-up in milliseconds. */
const modelState = 'warm-up-finished'

export interface MakeModelContext {
  readonly emit: (event: RunEvent) => void
  readonly signal: AbortSignal
  readonly warmUpMs: { value: number }
}

export interface WarmUpPlan {
  /** `./file.ts#name`, relative to `configDirectory`. */
  readonly warmUp: string | null
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
  const directory = join(path, 'model')
  const madeInMs = store.getState(modelState) as number | undefined
  if (madeInMs !== undefined) {
    warmUpMs.value = madeInMs
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
  warmUpMs.value = Date.now() - startedAt
  await store.setState(modelState, warmUpMs.value)
  return directory
}
