import { maskedTokens, type TrainingSample } from '@aworld-train/core'
import { sampleKey } from './training-sample.ts'

/** Counts of the tokens that an update trains, and the rollouts that it trains for the first time. */
export interface SelectedTokens {
  /** Tokens that no earlier update had, as they were handed out. */
  readonly tokens: number
  /** Part of `tokens` from groups whose rewards differ. */
  readonly withVariance: number
  /** Tokens that an earlier update had, or that belong to no rollout of the run. */
  readonly others: number
  /** The samples that no earlier update had. */
  readonly samples: readonly TrainingSample[]
}

/** Samples that a trainer was handed and has not trained. It may train them in any step, or never. */
export interface SelectedSamples {
  hand(samples: readonly TrainingSample[], withVariance: boolean): void
  take(samples: readonly TrainingSample[]): SelectedTokens
}

export function createSelectedSamples(): SelectedSamples {
  const waiting = new Map<string, { readonly tokens: number; readonly withVariance: boolean }>()
  return {
    hand(samples, withVariance) {
      for (const sample of samples) waiting.set(sampleKey(sample), { tokens: maskedTokens(sample), withVariance })
    },
    take(samples) {
      const taken: TrainingSample[] = []
      const counts = { tokens: 0, withVariance: 0, others: 0 }
      for (const sample of samples) {
        const tokens = maskedTokens(sample)
        if (tokens === 0) continue
        const handed = waiting.get(sampleKey(sample))
        if (!handed) {
          counts.others += tokens
          continue
        }
        waiting.delete(sampleKey(sample))
        // A trainer's own mask may be smaller. Tokens that it adds were not sampled, and show in the ledger.
        const trainedTokens = Math.min(tokens, handed.tokens)
        counts.tokens += trainedTokens
        if (handed.withVariance) counts.withVariance += trainedTokens
        taken.push(sample)
      }
      return { ...counts, samples: taken }
    },
  }
}
