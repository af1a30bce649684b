import type { PolicyLoss } from '../contracts/policy-loss.ts'

const sum = (values: ArrayLike<number>): number => Array.from(values).reduce((total, value) => total + value, 0)

/** One ratio for a sequence, the geometric mean of those of its tokens, which is clipped as a whole (GSPO, arXiv 2507.18071). */
export const gspo =
  ({ low = 3e-4, high = 4e-4 } = {}): PolicyLoss =>
  (rows) =>
    rows.map(({ logprobs, rolloutLogprobs, advantage }) => {
      const tokens = logprobs.length
      const ratio = Math.exp((sum(logprobs) - sum(rolloutLogprobs)) / tokens)
      const isClipped = advantage > 0 ? ratio > 1 + high : advantage < 0 && ratio < 1 - low
      const bounded = isClipped ? (advantage > 0 ? 1 + high : 1 - low) : ratio
      const slope = isClipped ? 0 : (-ratio * advantage) / tokens / rows.length
      return {
        loss: (-bounded * advantage) / rows.length,
        gradient: logprobs.map(() => slope),
        clipped: isClipped ? tokens : 0,
        metrics: { ratio },
      }
    })

/** The clip of PPO, divided by a constant in place of lengths, so that a token of a long answer weighs no less (Dr. GRPO, arXiv 2503.20783). */
export const drGrpo =
  ({ low = 0.2, high = 0.2, longest = 512 } = {}): PolicyLoss =>
  (rows) =>
    rows.map(({ logprobs, rolloutLogprobs, advantage }) => {
      const scale = advantage / longest / rows.length
      const ratios = logprobs.map((logprob, token) => Math.exp(logprob - rolloutLogprobs[token]!))
      const clips = ratios.map((ratio) => Number(advantage > 0 ? ratio > 1 + high : advantage < 0 && ratio < 1 - low))
      const bound = advantage > 0 ? 1 + high : 1 - low
      return {
        loss: sum(ratios.map((ratio, token) => -scale * (clips[token] === 1 ? bound : ratio))),
        gradient: ratios.map((ratio, token) => (clips[token] === 1 ? 0 : -scale * ratio)),
        clipped: sum(clips),
      }
    })

/**
 * Clipped importance weights that no gradient goes through, so that every token has one (CISPO, arXiv 2506.13585). Nothing stops a token
 * that has moved far, so it is for one pass over a batch.
 */
export function cispo({ high = 0.28 } = {}): PolicyLoss {
  const loss: PolicyLoss = (rows) => {
    const tokens = sum(rows.map(({ logprobs }) => logprobs.length))
    return rows.map(({ logprobs, rolloutLogprobs, advantage }) => {
      const weights = logprobs.map((logprob, token) => Math.min(Math.exp(logprob - rolloutLogprobs[token]!), 1 + high))
      const gradient = weights.map((weight) => (-weight * advantage) / tokens)
      return { loss: sum(gradient.map((slope, token) => slope * logprobs[token]!)), gradient }
    })
  }
  return Object.assign(loss, { mostPasses: 1 })
}
