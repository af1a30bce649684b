import { type Learner, maskedTokens, TrainError, type TrainingSample } from '@aworld-train/core'

export interface LogprobCheck {
  /** Approximate number of sampled tokens to recompute; 0 checks nothing. */
  readonly tokens: number
  readonly tolerance: number
  /** Temperature that the tokens were sampled at. */
  readonly temperature: number
  /** Takes only samples of these weights. By default it takes those of any one version, and the caller knows that the learner has it. */
  readonly weightVersion?: number | undefined
}

/**
 * The largest |sampled - recomputed| logprob over some tokens of samples with one weight version; `null` if there were none. Throws
 * POLICY_LOGPROB_MISMATCH above the tolerance.
 */
export async function checkLogprobs(learner: Learner, samples: readonly TrainingSample[], check: LogprobCheck): Promise<number | null> {
  const picked = pickSamples(samples, check)
  if (picked.length === 0) return null
  const recomputed = await learner.logprobs(
    picked.map((sample) => sample.tokenIds),
    check.temperature === 0 ? 1 : check.temperature,
    picked.map((sample) => sample.policy),
  )
  let largest = 0
  for (const [i, { lossMask, rolloutLogprobs, provenance }] of picked.entries()) {
    for (const [position, bit] of lossMask.entries()) {
      if (bit === 0) continue
      const difference = Math.abs(rolloutLogprobs[position]! - recomputed[i]![position]!)
      if (difference <= check.tolerance) {
        largest = Math.max(largest, difference)
        continue
      }
      throw new TrainError(
        'POLICY_LOGPROB_MISMATCH',
        `Token ${position} of rollout "${provenance.rollout}" was sampled with logprob ${rolloutLogprobs[position]} and has ${recomputed[i]![position]} now; ` +
          `they may differ by ${check.tolerance}. The weights that sample are not the weights that train; where both are the same and the service computes in half precision, raise training.logprobCheck.tolerance.`,
        { details: { rollout: provenance.rollout, position, difference } },
      )
    }
  }
  return largest
}

/** Picks samples spread over the batch, until they have about `tokens` sampled tokens: of each policy as many, and one at least. */
function pickSamples(samples: readonly TrainingSample[], { tokens, weightVersion }: LogprobCheck): TrainingSample[] {
  const pure = samples.filter(({ weightVersions }) => {
    const versions = new Set(weightVersions.map((span) => span.version))
    return weightVersion === undefined ? versions.size <= 1 : versions.size === 1 && versions.has(weightVersion)
  })
  const policies = [...Map.groupBy(pure, ({ policy }) => policy).values()]
  return policies.flatMap((own) => {
    const total = own.reduce((sum, sample) => sum + maskedTokens(sample), 0)
    if (tokens === 0 || total === 0) return []
    const count = Math.max(1, Math.min(own.length, Math.round((own.length * tokens) / policies.length / total)))
    return Array.from({ length: count }, (_, i) => own[Math.floor((i * own.length) / count)]!)
  })
}
