import type { Learner, LossAggregation, OptimizerSettings, TrainingSample, UpdateMetrics } from '@aworld-train/core'
import { learningRateAt } from './learning-rate.ts'

export interface SftOptions {
  readonly learner: Learner
  /** The batch of each step, in order, drawn lazily. */
  readonly batches: Iterable<readonly TrainingSample[]> | AsyncIterable<readonly TrainingSample[]>
  /** Steps of the schedule. The run ends with it, or with the batches. */
  readonly steps: number
  readonly learningRate: number
  /** 0 by default. */
  readonly warmupSteps?: number | undefined
  /** Default 1, which keeps the rate constant. */
  readonly finalLearningRateFraction?: number | undefined
  /** Betas 0.9 and 0.98, epsilon 1e-8, weight decay 0.01 and gradient norm 1 by default. */
  readonly optimizer?: Partial<Omit<OptimizerSettings, 'learningRate'>> | undefined
  readonly aggregation?: LossAggregation | undefined
  /** Checked before every step. Updates made by then stay. */
  readonly signal?: AbortSignal | undefined
  readonly onStep?: ((step: number, metrics: UpdateMetrics) => void) | undefined
}

export interface SftResult {
  readonly steps: number
  readonly trainedTokens: number
  /** The loss of each step. */
  readonly losses: readonly number[]
  readonly weightVersion: number
}

/** Supervised updates on the masked tokens of each batch, then one publish. Batches without such tokens are skipped. */
export async function trainSft(options: SftOptions): Promise<SftResult> {
  const { learner, batches, steps, learningRate, warmupSteps = 0, finalLearningRateFraction = 1, signal, onStep } = options
  const losses: number[] = []
  let trainedTokens = 0
  for await (const samples of batches) {
    if (losses.length >= steps) break
    signal?.throwIfAborted()
    if (!samples.some(({ lossMask }) => lossMask.includes(1))) continue
    const step = losses.length + 1
    const metrics = await learner.update({
      samples,
      loss: { kind: 'sft', aggregation: options.aggregation ?? 'token-mean' },
      optimizer: {
        betas: [0.9, 0.98],
        epsilon: 1e-8,
        weightDecay: 0.01,
        maxGradNorm: 1,
        ...options.optimizer,
        learningRate: learningRateAt(step, steps, { learningRate, warmupSteps, finalLearningRateFraction }),
      },
    })
    losses.push(metrics.loss)
    trainedTokens += metrics.trainedTokens
    onStep?.(step, metrics)
  }
  return { steps: losses.length, trainedTokens, losses, weightVersion: await learner.publish() }
}
