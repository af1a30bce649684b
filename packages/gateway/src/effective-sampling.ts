import type { Sampling } from '@aworld-train/core'

export interface SamplingBounds {
  /** Limit that the agent asks for; it may only shorten the answer. */
  readonly maxTokens: number | null
  readonly stop: readonly string[]
  /** Tokens that the context has room for. */
  readonly contextRoom: number
  /** Tokens that the rollout may still sample. */
  readonly budgetRoom: number
  /** Tokens that the conversation may still have. */
  readonly responseRoom?: number | undefined
}

/** The trainer's sampling, shortened by what the agent, the context and the budget allow. */
export function effectiveSampling(
  sampling: Sampling,
  { maxTokens, stop, contextRoom, budgetRoom, responseRoom = Number.POSITIVE_INFINITY }: SamplingBounds,
): Sampling {
  const allowed = Math.min(sampling.maxTokens, maxTokens ?? sampling.maxTokens, contextRoom, budgetRoom, responseRoom)
  if (allowed === sampling.maxTokens && stop.length === 0) return sampling
  return { ...sampling, maxTokens: allowed, stop: [...new Set([...sampling.stop, ...stop])] }
}
