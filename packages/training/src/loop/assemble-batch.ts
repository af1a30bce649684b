import {
  type Episode,
  isFailed,
  isInfrastructureFailure,
  isUnscored,
  maskedTokens,
  roleAdvantages,
  type TrainingSample,
  toEndedRollout,
  toTrainingSamples,
  type UntrainedTurns,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { roleMetrics } from './role-metrics.ts'
import { type BatchRow, rowsOf, rowsOfUntrained } from './step-samples.ts'

/** The rows that a step trains on, and a reason for every sampled token that it does not train on. */
export interface Batch {
  /** Samples of each trained group, in the order of their tasks. */
  readonly groups: readonly (readonly TrainingSample[])[]
  /** A row for each sample, trained or not, and rows for turns that are in no sample. */
  readonly rows: readonly BatchRow[]
  readonly sampledTokens: number
  readonly withVariance: { readonly sampled: number; readonly trained: number }
  readonly metrics: BatchMetrics
  readonly roleMetrics: Readonly<Record<string, number>>
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
  /** Groups in which the values of at least one role differ. */
  readonly groupsWithVariance: number
  readonly zeroVarianceGroups: number
  readonly groupsOfOne: number
}

export type BatchSettings = Pick<
  TrainingSettings,
  'advantage' | 'dropZeroVariance' | 'incompleteEpisodes' | 'maxSampleTokens' | 'ownReward'
>

/** Samples with advantages from the episodes of each group. */
export function assembleBatch(episodeGroups: readonly (readonly Episode[])[], settings: BatchSettings): Batch {
  const groups: TrainingSample[][] = []
  const rows: BatchRow[] = []
  const withVariance = { sampled: 0, trained: 0 }
  const rolesWithVariance = new Map<string, number>()
  const counts = { groupsWithVariance: 0, zeroVarianceGroups: 0, groupsOfOne: 0 }
  let sampledTokens = 0
  for (const episodes of episodeGroups) {
    const assemblies = episodes.map((episode) =>
      toTrainingSamples(episode, {
        maxSampleTokens: settings.maxSampleTokens ?? undefined,
        incompleteEpisodes: settings.incompleteEpisodes,
        ownReward: settings.ownReward,
      }),
    )
    const alone = aloneInGroup(episodes)
    for (const [i, assembly] of assemblies.entries()) {
      sampledTokens += assembly.sampled
      const episode = episodes[i]!
      const turns = episode === alone ? assembly.untrainedTurns.map(ofOne) : assembly.untrainedTurns
      rows.push(...rowsOfUntrained(episode.rollout, turns))
    }
    if (alone) counts.groupsOfOne++
    const roles = roleAdvantages(
      assemblies.map(({ samples }) => samples),
      settings.advantage,
    )
    if (roles.size === 0) continue
    const ends = new Set(Array.from(roles.values(), ({ noGradient }) => noGradient))
    if (ends.has(null)) counts.groupsWithVariance++
    else if (ends.has('zero-variance-group')) counts.zeroVarianceGroups++
    else counts.groupsOfOne++
    for (const [role, { noGradient }] of roles) {
      if (noGradient === null) rolesWithVariance.set(role, (rolesWithVariance.get(role) ?? 0) + 1)
    }
    const trainingSamples = assemblies.flatMap(({ samples }, i) =>
      samples.map((sample) => ({ ...sample, advantage: roles.get(sample.agent)!.advantages[i]! })),
    )
    const reasonOf = ({ agent }: TrainingSample) => (settings.dropZeroVariance ? roles.get(agent)!.noGradient : null)
    for (const [reason, samples] of Map.groupBy(trainingSamples, reasonOf)) {
      rows.push(...rowsOf(samples, reason))
      if (reason === null) groups.push(samples)
    }
    if (!ends.has(null)) continue
    const hasVariance = ({ agent }: { readonly agent: string }) => (roles.get(agent)?.noGradient ?? null) === null
    const tokens = tokensOf(trainingSamples.filter(hasVariance))
    const lost = assemblies
      .flatMap(({ untrainedTurns }) => untrainedTurns)
      .filter((turns) => turns.reason !== 'frozen-policy' && hasVariance(turns))
    withVariance.sampled += lost.reduce((sum, turns) => sum + turns.tokens, tokens)
    withVariance.trained += tokens
  }
  const episodes = episodeGroups.flat().map(toEndedRollout)
  const outcomes = episodes.filter((episode) => !isInfrastructureFailure(episode) && !isUnscored(episode))
  return {
    groups,
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
    roleMetrics: roleMetrics(episodeGroups.flat(), { groupsWithVariance: rolesWithVariance, ownReward: settings.ownReward }),
  }
}

/** The one episode that a reward of groups had to compare with nothing, if there is such a one. */
function aloneInGroup(episodes: readonly Episode[]): Episode | null {
  const [first, second] = episodes.filter(({ groupScored, stopReason }) => groupScored && stopReason !== 'failed')
  return first && !second && first.reward === null ? first : null
}

const ofOne = (turns: UntrainedTurns): UntrainedTurns => (turns.reason === 'not-scored' ? { ...turns, reason: 'group-of-one' } : turns)

const tokensOf = (samples: readonly TrainingSample[]) => samples.reduce((sum, sample) => sum + maskedTokens(sample), 0)
