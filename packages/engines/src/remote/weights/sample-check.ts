import type { RemoteTokenEngine } from '../engine/token-engine.ts'
import { generateOn } from '../engine/token-engine.ts'
import type { Replica } from '../fleet/replica.ts'
import type { CheckOptions, SampledCheck } from './check-weights.ts'

export interface SampleCheckOptions {
  readonly engine: RemoteTokenEngine
  readonly replica: Replica
  readonly promptTokenIds: Int32Array
  readonly version: number
  readonly policy: string | undefined
  readonly check: Pick<CheckOptions, 'maxTokens' | 'temperature'>
  readonly signal: AbortSignal
}

/** Samples a few tokens from one server. They belong to no rollout and are not counted as sampled. */
export async function sampleCheck({
  engine,
  replica,
  promptTokenIds,
  version,
  policy,
  check,
  signal,
}: SampleCheckOptions): Promise<SampledCheck> {
  const { maxTokens = 16, temperature = 0.8 } = check
  const { tokenIds, logprobs } = await generateOn(
    engine,
    replica,
    {
      promptTokenIds,
      sampling: { temperature, topP: 1, topK: 0, maxTokens, stop: [], seed: 0 },
      random: { seed: version, task: 'weight-check', sample: replica.index, turn: 0 },
      affinity: `weight-check.${replica.index}`,
      policy,
    },
    signal,
  )
  return { server: replica.url, promptTokenIds, tokenIds, logprobs }
}
