import { TrainError } from '@aworld-train/core'

/** Tokens and logprobs that one server sampled right after an update. */
export interface SampledCheck {
  readonly server: string
  readonly promptTokenIds: Int32Array
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
}

export interface CheckOptions {
  /**
   * Logprobs of every token of a row given those before it, at `temperature`, by the published weights; index 0 is ignored. The
   * `logprobs` of a `Learner` has this form.
   */
  readonly recompute: (rows: readonly Int32Array[], temperature: number) => Promise<readonly Float32Array[]>
  /** Prompts to sample from; a few tokens that the model knows. */
  readonly prompts: readonly Int32Array[]
  /** Largest accepted difference: 1e-3 for float32 on both sides, more if the engine has a smaller type. */
  readonly tolerance: number
  /** Tokens sampled for each prompt. Default 16. */
  readonly maxTokens?: number | undefined
  /** Temperature other than 1, so that an engine that reports logprobs of another temperature is found too. Default 0.8. */
  readonly temperature?: number | undefined
}

/** The largest |sampled - recomputed| of each server. */
export async function compareLogprobs(
  sampled: readonly SampledCheck[],
  { recompute, temperature = 0.8 }: Pick<CheckOptions, 'recompute' | 'temperature'>,
): Promise<Map<string, number>> {
  const rows = sampled.map(({ promptTokenIds, tokenIds }) => Int32Array.of(...promptTokenIds, ...tokenIds))
  const recomputed = await recompute(rows, temperature)
  const largest = new Map<string, number>()
  for (const [row, { server, promptTokenIds, logprobs }] of sampled.entries()) {
    for (const [index, logprob] of logprobs.entries()) {
      const difference = Math.abs(logprob - (recomputed[row]?.[promptTokenIds.length + index] ?? Number.NaN))
      largest.set(server, Math.max(largest.get(server) ?? 0, difference))
    }
  }
  return largest
}

export function staleWeights(server: string, difference: number, tolerance: number, version: number): TrainError {
  return new TrainError(
    'POLICY_STALE_WEIGHTS',
    `${server} samples logprobs that differ by ${difference.toPrecision(3)} from those of version ${version}, which was published to it; they may differ by ${tolerance}. Publish again, or restart the server.`,
    { details: { server, difference, tolerance, version } },
  )
}
