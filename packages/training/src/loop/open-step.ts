import {
  type Episode,
  isFailed,
  isInfrastructureFailure,
  isUnscored,
  type StepSample,
  type TrainingSample,
  toEndedRollout,
  type UpdateMetrics,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { sampledTokensOf } from './loop-state.ts'
import { roleMetrics } from './role-metrics.ts'
import type { TrainedSamples } from './selected-samples.ts'
import { type BatchRow, toStepSamples } from './step-samples.ts'
import { sampleKey } from './training-sample.ts'
import { summarizeUpdates } from './update-policy.ts'

/** A step that its caller makes and that is not committed yet. */
export class OpenStep {
  readonly step: number
  /** Whether an earlier process of the run committed it. */
  readonly isRepeated: boolean
  readonly startedAt = performance.now()
  /** What the last check of logprobs found. */
  difference: number | null = null
  readonly #episodes: Episode[] = []
  readonly #updates: UpdateMetrics[] = []
  readonly #rows: BatchRow[] = []
  /** The logprobs of the loss when it first trained a sample, by `sampleKey`. */
  readonly #logprobs = new Map<string, Float32Array>()
  readonly #ms = { rollout: 0, update: 0 }
  #calls = 0
  #trainedTokens = 0

  constructor(step: number, isRepeated: boolean) {
    this.step = step
    this.isRepeated = isRepeated
  }

  /** Begins a call of `rollout` and returns the number of those before it. */
  beginCall(): number {
    return this.#calls++
  }

  /** Adds the time since `startedAt`. */
  addTime(part: 'rollout' | 'update', startedAt: number): void {
    this.#ms[part] += performance.now() - startedAt
  }

  /** Adds rows that are not trained. */
  addRows(rows: readonly BatchRow[]): void {
    this.#rows.push(...rows)
  }

  /** Adds episodes that the metrics count. */
  addEpisodes(episodes: readonly Episode[]): void {
    this.#episodes.push(...episodes)
  }

  addUpdate(samples: readonly TrainingSample[], metrics: UpdateMetrics, { rows, trainedTokens }: TrainedSamples): void {
    this.#updates.push(metrics)
    this.#rows.push(...rows)
    this.#trainedTokens += trainedTokens
    for (const [i, row] of metrics.logprobs?.entries() ?? []) {
      const key = sampleKey(samples[i]!)
      if (!this.#logprobs.has(key)) this.#logprobs.set(key, row)
    }
  }

  /** Keys of the rollouts that were trained. */
  trainedRollouts(): string[] {
    return [...new Set(this.#rows.flatMap(({ reason, rollout }) => (reason === null ? [rollout] : [])))]
  }

  samples(): StepSample[] {
    return toStepSamples(this.step, this.#rows, this.#logprobs)
  }

  metrics({ ownReward }: Pick<TrainingSettings, 'ownReward'>): Record<string, number> {
    const [episodes, updates] = [this.#episodes, this.#updates]
    const ended = episodes.map(toEndedRollout)
    const outcomes = ended.filter((episode) => !isInfrastructureFailure(episode) && !isUnscored(episode))
    const rewards = outcomes.map(({ reward }) => reward ?? 0)
    return {
      ...(rewards.length > 0 && { rewardMean: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length }),
      rollouts: episodes.length,
      failedEpisodes: ended.filter(isFailed).length,
      sampledTokens: episodes.reduce((sum, episode) => sum + sampledTokensOf(episode), 0),
      trainedTokens: this.#trainedTokens,
      ...(updates.length > 0 && summarizeUpdates(updates)),
      ...roleMetrics(episodes, { ownReward }),
      updates: updates.length,
      ...(this.difference !== null && { maxLogprobDifference: this.difference }),
      rolloutMs: this.#ms.rollout,
      updateMs: this.#ms.update,
    }
  }
}
