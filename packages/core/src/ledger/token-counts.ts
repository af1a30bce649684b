import type { UntrainedReason } from '../protocol/token-ledger.ts'

/** Sampled tokens that were not trained, by reason. */
export type TokenCounts = Partial<Record<UntrainedReason, number>>

/** Adds `tokens` under `reason`; nothing is added for 0. */
export function addCount(counts: TokenCounts, reason: UntrainedReason, tokens: number): void {
  if (tokens !== 0) counts[reason] = (counts[reason] ?? 0) + tokens
}

/** Adds every count of `from` to `into`. */
export function mergeCounts(into: TokenCounts, from: TokenCounts): void {
  for (const [reason, tokens] of Object.entries(from) as [UntrainedReason, number][]) addCount(into, reason, tokens)
}

/** Tokens over all reasons. */
export function totalCount(counts: TokenCounts): number {
  return Object.values(counts).reduce((sum, tokens) => sum + tokens, 0)
}
