import type { LossAggregation } from '@aworld-train/core'
import type { Episode } from '@aworld-train/protocol'

/** One row as a trainer trained it, without padding: prompt and response as one, all arrays of one length. */
export interface TrainedRow {
  readonly tokenIds: readonly number[]
  /** 1 where a token is trained. */
  readonly mask: readonly number[]
  /** 0 outside the mask. */
  readonly advantages: readonly number[]
  /** As the loss had them, 0 outside the response; `null` where the trainer does not show them. */
  readonly logprobs: readonly number[] | null
  /** Derivative of the loss by each logprob; `null` where the trainer does not show it. */
  readonly gradients: readonly number[] | null
}

/** The batch of one update. */
export interface TrainedBatch {
  /** From 1. */
  readonly step: number
  /** `null` where the trainer does not show it. */
  readonly loss: number | null
  readonly rows: readonly TrainedRow[]
}

/** What a training has left, in all its starts together. */
export interface TrainedRun {
  /** Episodes of training with the step that they were made for. */
  readonly episodes: readonly { readonly step: number; readonly episode: Episode }[]
  /** Of every completed step its batch; one update a step. */
  readonly batches: readonly TrainedBatch[]
  /** Completed steps, in their order. */
  readonly steps: readonly number[]
  readonly ledger: { readonly sampled: number; readonly trained: number; readonly unexplained: number }
  /** Folders in the form of Hugging Face by step, 0 for what the training began with; `null` where the weights are not to be had. */
  readonly weights: readonly (string | null)[]
  /** A group with a failed rollout is replaced by another one, so that nothing of it is trained. */
  readonly replacesGroups?: boolean | undefined
}

/** How a trainer adds up a batch, which the reference takes over. */
export interface TrainerArithmetic {
  /** What is added to the standard deviation (n - 1) of a group's rewards. */
  readonly advantageEpsilon: number
  readonly lossMean: LossAggregation
  /** Added to the root of Adam's second moment; no weight decay, no clipping. */
  readonly adamEpsilon: number
}
