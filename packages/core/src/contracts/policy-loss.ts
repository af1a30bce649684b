import type { TrainingSample } from '../protocol/training-sample.ts'
import type { Learner, LossAggregation, UpdateMetrics, UpdateRequest } from './learner.ts'

/**
 * A loss of one's own: a pure function of the whole batch of an update, so that it may weigh rows and tokens as it likes. It answers at
 * once, with one `RowLoss` for each row, in their order.
 */
export interface PolicyLoss {
  (rows: readonly PolicyLossRow[]): readonly RowLoss[]
  /** Passes over a batch for which it is made; a training with more is warned of. */
  readonly mostPasses?: number | undefined
}

/** A sample as a loss sees it. An array has one number for each token with loss mask 1, in order; every array is a copy. */
export interface PolicyLossRow {
  /** Natural logarithm of each token's probability by the weights that are trained, at the temperature of the update. */
  readonly logprobs: Float64Array
  /** The same by the weights that sampled. With `maxStaleness` they are raised where a ratio would begin above 2. */
  readonly rolloutLogprobs: Float64Array
  /** The same by the reference policy; absent without one. */
  readonly referenceLogprobs?: Float64Array | undefined
  /** What the group says of the sample: by default its reward less the group's mean, in standard deviations. */
  readonly advantage: number
  readonly reward: number
  /** Samples of one task in one step have the same. */
  readonly group: string
  readonly sample: TrainingSample
}

export interface RowLoss {
  /** What the row adds to the loss of the batch. */
  readonly loss: number
  /** Derivative of the loss of the batch by each of the row's logprobs: as many as there are. */
  readonly gradient: ArrayLike<number>
  /** Tokens whose gradient a clip has taken away; 0 by default. */
  readonly clipped?: number | undefined
  /** Numbers to watch, by name: the mean over the rows that have one is the metric `loss/<name>` of the step. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
}

/** An update by a loss of one's own, to which the terms of the loss in the box may be added. */
export interface PolicyLossRequest extends Omit<UpdateRequest, 'loss'> {
  readonly loss: PolicyLoss
  /** Weight of the k3 estimate of KL(policy, reference), which needs `referenceLogprobs`; 0 by default. */
  readonly klCoefficient?: number | undefined
  /** Weight of the entropy in nats a token, which is subtracted; 0 by default. */
  readonly entropyCoefficient?: number | undefined
  /** How tokens weigh in both terms; `token-mean` by default. */
  readonly aggregation?: LossAggregation | undefined
}

/** A learner whose updates take a loss of one's own too. */
export interface PolicyLearner extends Learner {
  /** LOSS_INVALID for a loss that throws or answers something else than a finite number for every row and token; the weights are then as before. */
  update(request: UpdateRequest | PolicyLossRequest): Promise<UpdateMetrics>
}
