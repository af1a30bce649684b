import { TokenLedger, type UntrainedReason } from '../protocol/token-ledger.ts'
import { addCount, mergeCounts, type TokenCounts, totalCount } from './token-counts.ts'

/** Collects the account of a run. `sampled` and `trained` come from the sampler and the loss, never from here. */
export interface LedgerAccumulator {
  add(reason: UntrainedReason, tokens: number): void
  merge(counts: TokenCounts): void
  /** Adds a group whose rewards differ: its sampled tokens, and those of them that were trained. */
  addVarianceGroup(tokens: { sampled: number; trained: number }): void
  toLedger(counted: { sampled: number; trained: number }): TokenLedger
}

/** Creates a ledger that starts empty or from a saved one. */
export function createLedger(from?: Pick<TokenLedger, 'untrained' | 'withVariance'>): LedgerAccumulator {
  const untrained: TokenCounts = { ...from?.untrained }
  const withVariance = { sampled: from?.withVariance.sampled ?? 0, trained: from?.withVariance.trained ?? 0 }
  return {
    add: (reason, tokens) => addCount(untrained, reason, tokens),
    merge: (counts) => mergeCounts(untrained, counts),
    addVarianceGroup({ sampled, trained }) {
      withVariance.sampled += sampled
      withVariance.trained += trained
    },
    toLedger: ({ sampled, trained }) =>
      TokenLedger.parse({
        version: 1,
        sampled,
        trained,
        untrained: { ...untrained },
        unexplained: sampled - trained - totalCount(untrained),
        withVariance: { ...withVariance },
      }),
  }
}
