import { type Episode, maskedTokens, type TrainingSample, toTrainingSamples } from '@aworld-train/core'
import { type BatchRow, rowsOf, rowsOfUntrained } from './step-samples.ts'
import type { TokenAccounts } from './token-accounts.ts'
import { sampleKey } from './training-sample.ts'

/** What an update trained for the first time. */
export interface TrainedSamples {
  readonly rows: readonly BatchRow[]
  readonly trainedTokens: number
}

/** Samples that a trainer was handed and has not trained. It may train them in any step, or never. */
export class SelectedSamples {
  readonly #tokens: TokenAccounts
  readonly #waiting = new Map<string, { readonly tokens: number; readonly withVariance: boolean }>()

  constructor(tokens: TokenAccounts) {
    this.#tokens = tokens
  }

  /**
   * Hands out the episodes of a group, and returns the rows of turns that are in no sample. Trainable tokens count as unselected until an
   * update has trained them. Nothing counts in a repeated step, whose tokens are in the accounts.
   */
  hand(episodes: readonly Episode[], isRepeated: boolean): BatchRow[] {
    const assemblies = episodes.map((episode) => toTrainingSamples(episode, { truncatedSampling: 'accept' }))
    const rewards = assemblies.flatMap(({ samples: [first] }) => (first ? [first.reward] : []))
    const withVariance = new Set(rewards).size > 1
    return assemblies.flatMap(({ samples, untrained, untrainedTurns, sampled }, i) => {
      const rows = rowsOfUntrained(episodes[i]!.rollout, untrainedTurns)
      for (const sample of samples) this.#waiting.set(sampleKey(sample), { tokens: maskedTokens(sample), withVariance })
      if (isRepeated) return rows
      this.#tokens.addRows(rows)
      for (const sample of samples) this.#tokens.addUntrained(sample.policy, maskedTokens(sample), 'unselected-by-trainer')
      if (withVariance) this.#tokens.addVarianceGroup({ sampled: sampled - (untrained['frozen-policy'] ?? 0), trained: 0 })
      return rows
    })
  }

  /** Counts the samples of an update, which trained `trainedTokens`. Samples of an earlier update, or of no rollout of the run, are left out. */
  train(samples: readonly TrainingSample[], trainedTokens: number, isRepeated: boolean): TrainedSamples {
    const policies = Map.groupBy(samples, ({ policy }) => policy)
    const parts = Array.from(policies, ([policy, own]): TrainedSamples => {
      const { taken, tokens, withVariance, others } = this.#take(own)
      // Of several policies, the learner counts all tokens as one.
      const trained = (policies.size === 1 ? trainedTokens : totalTokens(own)) - others
      if (!isRepeated) {
        this.#tokens.addTrained(policy, trained)
        this.#tokens.addUntrained(policy, -tokens, 'unselected-by-trainer')
        this.#tokens.addVarianceGroup({ sampled: 0, trained: withVariance })
      }
      return { rows: rowsOf(taken), trainedTokens: trained }
    })
    return { rows: parts.flatMap(({ rows }) => rows), trainedTokens: parts.reduce((sum, part) => sum + part.trainedTokens, 0) }
  }

  /** Takes samples that no earlier update had: their tokens as they were handed out, and those of them from groups whose rewards differ. */
  #take(samples: readonly TrainingSample[]) {
    const taken: TrainingSample[] = []
    const counts = { tokens: 0, withVariance: 0, others: 0 }
    for (const sample of samples) {
      const tokens = maskedTokens(sample)
      if (tokens === 0) continue
      const handed = this.#waiting.get(sampleKey(sample))
      if (!handed) {
        counts.others += tokens
        continue
      }
      this.#waiting.delete(sampleKey(sample))
      // A trainer's own mask may be smaller. Tokens that it adds were not sampled, and show in the ledger.
      const handedTokens = Math.min(tokens, handed.tokens)
      counts.tokens += handedTokens
      if (handed.withVariance) counts.withVariance += handedTokens
      taken.push(sample)
    }
    return { ...counts, taken }
  }
}

const totalTokens = (samples: readonly TrainingSample[]) => samples.reduce((sum, sample) => sum + maskedTokens(sample), 0)
