import type { LossAggregation } from '../contracts/learner.ts'
import type { TrainingSample } from '../protocol/training-sample.ts'

/** Tokens of a sample that carry loss. */
export function maskedTokens({ lossMask }: Pick<TrainingSample, 'lossMask'>): number {
  let tokens = 0
  for (const bit of lossMask) tokens += bit
  return tokens
}

/** Positions of the tokens of a sample that carry loss, ascending. */
export function trainedPositions({ lossMask }: Pick<TrainingSample, 'lossMask'>): number[] {
  return [...lossMask.keys()].filter((position) => lossMask[position] === 1)
}

/** Tokens of a sample up to its last trained one; what follows cannot change the loss. */
export function trainedLength({ lossMask }: TrainingSample): number {
  return Math.max(1, lossMask.lastIndexOf(1) + 1)
}

/** Weight of a trained token of each sample; they add up to 1 over the batch's trained tokens. */
export function lossWeights(samples: readonly Pick<TrainingSample, 'lossMask'>[], aggregation: LossAggregation): number[] {
  const counts = samples.map(maskedTokens)
  const tokens = counts.reduce((sum, count) => sum + count, 0)
  const rows = counts.filter((count) => count > 0).length
  return counts.map((count) => (aggregation === 'token-mean' ? 1 / tokens : count > 0 ? 1 / (count * rows) : 0))
}
