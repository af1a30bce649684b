import type { TrainingSample } from '@aworld-train/core'

/** The greatest ratio that a token of earlier weights may have at the start of a step's updates. */
const greatestRatio = 2

export interface TruncatedSamples {
  readonly samples: readonly TrainingSample[]
  /** Number of trained tokens whose ratio was greater. */
  readonly truncated: number
}

/**
 * Samples of earlier weights, ready for a loss over exp(logprob - rolloutLogprob): of each trained token that ratio is at most 2 by
 * `current`, the learner's logprobs of now (truncated importance sampling, Ionides 2008; by token as in verl's rollout correction). The
 * rollout logprob of a token with a greater one is raised to `current` - ln 2.
 */
export function truncateRatios(samples: readonly TrainingSample[], current: readonly Float32Array[]): TruncatedSamples {
  let truncated = 0
  const limited = samples.map((sample, row) => {
    let rolloutLogprobs: Float32Array | null = null
    for (const [at, bit] of sample.lossMask.entries()) {
      const least = current[row]![at]! - Math.log(greatestRatio)
      if (bit === 0 || sample.rolloutLogprobs[at]! >= least) continue
      rolloutLogprobs ??= sample.rolloutLogprobs.slice()
      rolloutLogprobs[at] = least
      truncated++
    }
    return rolloutLogprobs ? { ...sample, rolloutLogprobs } : sample
  })
  return { samples: limited, truncated }
}
