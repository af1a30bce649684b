import {
  type Episode,
  groupAdvantages,
  isFailed,
  isInfrastructureFailure,
  isUnscored,
  maskedTokens,
  mergeCounts,
  type TokenCounts,
  type TrainingSample,
  toEndedRollout,
  toTrainingSamples,
  totalCount,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { type BatchRow, rowsOf, rowsOfUntrained } from './step-samples.ts'

/** The rows that a step trains on, and a reason for every sampled token that it does not train on. */
export interface Batch {
  /** Samples of each trained group, in the order of their tasks. */
  readonly groups: readonly (readonly TrainingSample[])[]
  readonly untrained: TokenCounts
  /** A row for each sample, trained or not, and rows for turns that are in no sample. */
  readonly rows: readonly BatchRow[]
  readonly sampledTokens: number
  readonly withVariance: { readonly sampled: number; readonly trained: number }
  readonly metrics: BatchMetrics
}

export interface BatchMetrics {
  /**
   * Mean over all rollouts except those that the infrastructure failed and those whose reward abstained. Any other rollout without a reward
   * counts as 0.
   */
  readonly rewardMean: number
  readonly failedEpisodes: number
  /** Episodes whose reward abstained. */
  readonly unscoredEpisodes: number
  readonly incompleteEpisodes: number
  readonly groups: number
  readonly groupsWithVariance: number
  readonly zeroVarianceGroups: number
  readonly groupsOfOne: number
}

export type BatchSettings = Pick<TrainingSettings, 'advantage' | 'dropZeroVariance' | 'incompleteEpisodes' | 'maxSampleTokens'>

/** Samples with advantages from the episodes of each group. */
export function assembleBatch(episodeGroups: readonly (readonly Episode[])[], settings: BatchSettings): Batch {
  const groups: TrainingSample[][] = []
  const untrained: TokenCounts = {}
  const rows: BatchRow[] = []
  const withVariance = { sampled: 0, trained: 0 }
  const counts = { groupsWithVariance: 0, zeroVarianceGroups: 0, groupsOfOne: 0 }
  let sampledTokens = 0
  for (const episodes of episodeGroups) {
    const assemblies = episodes.map((episode) =>
      toTrainingSamples(episode, {
        maxSampleTokens: settings.maxSampleTokens ?? undefined,
        incompleteEpisodes: settings.incompleteEpisodes,
      }),
    )
    const trainable = assemblies.filter(({ samples }) => samples.length > 0)
    for (const [i, assembly] of assemblies.entries()) {
      sampledTokens += assembly.sampled
      mergeCounts(untrained, assembly.untrained)
      rows.push(...rowsOfUntrained(episodes[i]!.rollout, assembly.untrainedTurns))
    }
    if (trainable.length === 0) continue
    const { advantages, noGradient } = groupAdvantages(
      trainable.map(({ samples }) => samples[0]!.reward),
      settings.advantage,
    )
    const trainingSamples = trainable.flatMap(({ samples }, i) => samples.map((sample) => ({ ...sample, advantage: advantages[i]! })))
    const tokens = trainingSamples.reduce((sum, sample) => sum + maskedTokens(sample), 0)
    if (noGradient === 'group-of-one') counts.groupsOfOne++
    if (noGradient === 'zero-variance-group') counts.zeroVarianceGroups++
    if (noGradient === null) {
      counts.groupsWithVariance++
      const frozen = assemblies.reduce((sum, assembly) => sum + (assembly.untrained['frozen-policy'] ?? 0), 0)
      const all = assemblies.reduce((sum, assembly) => sum + totalCount(assembly.untrained), 0)
      withVariance.sampled += tokens + all - frozen
      withVariance.trained += tokens
    }
    const reason = settings.dropZeroVariance ? noGradient : null
    rows.push(...rowsOf(trainingSamples, reason))
    if (reason !== null) mergeCounts(untrained, { [reason]: tokens })
    else groups.push(trainingSamples)
  }
  const episodes = episodeGroups.flat().map(toEndedRollout)
  const outcomes = episodes.filter((episode) => !isInfrastructureFailure(episode) && !isUnscored(episode))
  return {
    groups,
    untrained,
    rows,
    sampledTokens,
    withVariance,
    metrics: {
      rewardMean: outcomes.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / Math.max(1, outcomes.length),
      failedEpisodes: episodes.filter(isFailed).length,
      unscoredEpisodes: episodes.filter(isUnscored).length,
      incompleteEpisodes: episodes.filter((episode) => !isFailed(episode) && episode.stopReason !== 'completed').length,
      groups: episodeGroups.length,
      ...counts,
    },
  }
}
