/** Contribution of one token to the loss (before its weight), and the derivative with respect to its logprob. */
export interface TokenLoss {
  readonly loss: number
  readonly logprobGradient: number
  /** 1 if clipping stopped the gradient of the policy term. */
  readonly clipped: number
  /** k3 estimate of KL(policy, reference); 0 without a reference. */
  readonly kl: number
}

export interface PolicyLossInput {
  readonly logprob: number
  readonly rolloutLogprob: number
  readonly advantage: number
  /** null without a reference. */
  readonly referenceLogprob: number | null
  readonly clipLow: number
  readonly clipHigh: number
  readonly klCoefficient: number
}

/**
 * Clipped policy loss -min(r A, clip(r, 1 - low, 1 + high) A) (Schulman et al. 2017; separate bounds: DAPO, 2025) plus
 * klCoefficient * (exp(q) - q - 1), q = reference - policy logprob (k3, Schulman 2020, "Approximating KL divergence").
 */
export function policyLoss(input: PolicyLossInput): TokenLoss {
  const { logprob, rolloutLogprob, advantage, referenceLogprob, clipLow, clipHigh, klCoefficient } = input
  const ratio = Math.exp(logprob - rolloutLogprob)
  const free = ratio * advantage
  // The clip would hide an infinite ratio, which no valid pair of logprobs has.
  if (!Number.isFinite(free)) return { loss: Number.NaN, logprobGradient: 0, clipped: 0, kl: 0 }
  const clipped = advantage > 0 ? ratio > 1 + clipHigh : advantage < 0 && ratio < 1 - clipLow
  const bound = advantage > 0 ? 1 + clipHigh : 1 - clipLow
  let loss = clipped ? -bound * advantage : -free
  let logprobGradient = clipped ? 0 : -free
  let kl = 0
  if (referenceLogprob !== null) {
    const q = referenceLogprob - logprob
    const e = Math.exp(q)
    kl = e - q - 1
    loss += klCoefficient * kl
    logprobGradient += klCoefficient * (1 - e)
  }
  return { loss, logprobGradient, clipped: clipped ? 1 : 0, kl }
}

/** Negative log-likelihood of one token. */
export function likelihoodLoss(logprob: number): TokenLoss {
  return { loss: -logprob, logprobGradient: -1, clipped: 0, kl: 0 }
}

/** A loss of which only the derivative is known. */
export function linearLoss(logprob: number, coefficient: number): TokenLoss {
  return { loss: coefficient * logprob, logprobGradient: coefficient, clipped: 0, kl: 0 }
}
