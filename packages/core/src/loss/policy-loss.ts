import type { LossAggregation } from '../contracts/learner.ts'

export interface ClipRange {
  readonly clipLow: number
  readonly clipHigh: number
}

/** -min(r·A, clip(r, 1 - low, 1 + high)·A) of one token, with r = exp(logprob - old logprob) (PPO, arXiv 1707.06347; two clips: DAPO, arXiv 2503.14476). */
export function ppoClipLoss(logprob: number, oldLogprob: number, advantage: number, { clipLow, clipHigh }: ClipRange): number {
  const ratio = Math.exp(logprob - oldLogprob)
  return -Math.min(ratio * advantage, Math.min(Math.max(ratio, 1 - clipLow), 1 + clipHigh) * advantage)
}

/** Derivative of `ppoClipLoss` by `logprob`; 0 where the clip is at work. */
export function ppoClipGradient(logprob: number, oldLogprob: number, advantage: number, range: ClipRange): number {
  return isClipped(logprob, oldLogprob, advantage, range) ? 0 : -Math.exp(logprob - oldLogprob) * advantage
}

/** Whether the clip takes the gradient of a token away. */
export function isClipped(logprob: number, oldLogprob: number, advantage: number, { clipLow, clipHigh }: ClipRange): boolean {
  const ratio = Math.exp(logprob - oldLogprob)
  return advantage > 0 ? ratio > 1 + clipHigh : advantage < 0 && ratio < 1 - clipLow
}

/** k3 estimate of KL(policy, reference) at one token, never negative: exp(ref - p) - (ref - p) - 1 (http://joschu.net/blog/kl-approx.html). */
export function k3Divergence(logprob: number, referenceLogprob: number): number {
  const difference = referenceLogprob - logprob
  return Math.expm1(difference) - difference
}

/** Mean of token losses where the mask is 1: over all tokens of the batch, or over the means of its rows. Rows without a trained token do not count. */
export function aggregateLoss(
  losses: readonly ArrayLike<number>[],
  masks: readonly ArrayLike<number>[],
  aggregation: LossAggregation,
): number {
  let tokens = 0
  let rows = 0
  let sumOfTokens = 0
  let sumOfMeans = 0
  for (const [row, mask] of masks.entries()) {
    let count = 0
    let sum = 0
    for (let i = 0; i < mask.length; i++) {
      if (mask[i] !== 1) continue
      sum += losses[row]![i]!
      count++
    }
    if (count === 0) continue
    tokens += count
    rows++
    sumOfTokens += sum
    sumOfMeans += sum / count
  }
  if (tokens === 0) return 0
  return aggregation === 'token-mean' ? sumOfTokens / tokens : sumOfMeans / rows
}
