import type { Episode, LossAggregation } from '@aworld-train/core'

/** One row of a training, without padding: prompt and response together, with all arrays of equal length. */
export interface TrainedRow {
  readonly tokenIds: readonly number[]
  /** 1 for trained tokens. */
  readonly mask: readonly number[]
  /** 0 outside the mask. */
  readonly advantages: readonly number[]
  /** The loss's logprobs, 0 outside the response; `null` if the trainer does not show them. */
  readonly logprobs: readonly number[] | null
  /** Derivative of the loss by each logprob; `null` if the trainer does not show it. */
  readonly gradients: readonly number[] | null
}

/** The batch of one update. */
export interface TrainedBatch {
  /** Counted from 1. */
  readonly step: number
  /** `null` if the trainer does not show it. */
  readonly loss: number | null
  readonly rows: readonly TrainedRow[]
}

/** The results of a training over all its starts. */
export interface TrainedRun {
  /** Episodes of training, each with its step. */
  readonly episodes: readonly { readonly step: number; readonly episode: Episode }[]
  /** The batch of every completed step, with one update a step. */
  readonly batches: readonly TrainedBatch[]
  /** Completed steps, in order. */
  readonly steps: readonly number[]
  readonly ledger: { readonly sampled: number; readonly trained: number; readonly unexplained: number }
  /** Folders in the form of Hugging Face by step; 0 is the starting model. `null` if the weights are not available. */
  readonly weights: readonly (string | null)[]
  /** Whether another group replaces a group with a failed rollout, so that nothing of it is trained. */
  readonly replacesGroups?: boolean | undefined
}

/** How a trainer sums a batch. The reference does the same. */
export interface TrainerArithmetic {
  /** Added to the standard deviation (n - 1) of a group's rewards. */
  readonly advantageEpsilon: number
  readonly lossMean: LossAggregation
  /** Added to the root of Adam's second moment. There is no weight decay and no clipping. */
  readonly adamEpsilon: number
}
