import type { TrainingSample } from '@aworld-train/protocol'

/** One optimiser update over a batch. */
export type LossDefinition =
  | { readonly kind: 'sft'; readonly aggregation: LossAggregation }
  | {
      readonly kind: 'ppo-clip'
      readonly clipLow: number
      readonly clipHigh: number
      /** Weight of the k3 estimate of KL(policy, reference); 0 needs no reference. */
      readonly klCoefficient: number
      readonly entropyCoefficient: number
      readonly aggregation: LossAggregation
    }
  | {
      /** The sum of coefficient * logprob over the batch: what remains of any loss once its derivatives are known. */
      readonly kind: 'linear'
      /** Of each sample, the derivative of the batch's loss by the logprob of each of its tokens; read where the loss mask is 1. */
      readonly coefficients: readonly Float32Array[]
      readonly entropyCoefficient: number
      /** Weighs the entropy only; coefficients are weighed already. */
      readonly aggregation: LossAggregation
    }

/** `token-mean`: every trained token of the batch weighs the same. `sequence-mean`: every sample does. */
export type LossAggregation = 'token-mean' | 'sequence-mean'

export interface OptimizerSettings {
  readonly learningRate: number
  readonly betas: readonly [number, number]
  readonly epsilon: number
  readonly weightDecay: number
  /** Clip of the global gradient norm; 0 is none. */
  readonly maxGradNorm: number
}

export interface UpdateRequest {
  readonly samples: readonly TrainingSample[]
  /** Logprobs of the reference policy per sample, only where `klCoefficient` is not 0. */
  readonly referenceLogprobs?: readonly Float32Array[]
  readonly loss: LossDefinition
  /** Logprobs in the loss are log-softmax of logits / temperature, as in `rolloutLogprobs`; 1 when absent. */
  readonly temperature?: number
  readonly optimizer: OptimizerSettings
}

export interface UpdateMetrics {
  readonly loss: number
  /** Absent where the learner is not told. */
  readonly gradNorm?: number | undefined
  readonly clipFraction: number
  readonly entropy: number
  readonly kl: number
  /** Tokens that carried loss, counted in the loss. */
  readonly trainedTokens: number
  /** Of each sample, the logprobs that the loss had for the tokens with loss mask 1, in order; absent where the learner does not keep them. */
  readonly logprobs?: readonly Float32Array[] | undefined
  /** What a loss of one's own wants to be watched, by name. */
  readonly named?: Readonly<Record<string, number>> | undefined
}

/** Trains a policy. `update` changes the trainer's weights; sampling sees them after `publish`. */
export interface Learner {
  /** Gradient step over `samples`, in their order. A loss that is not finite, or that no learner knows (CONFIG_INVALID), rejects and leaves the weights as they were. */
  update(request: UpdateRequest): Promise<UpdateMetrics>
  /** Recomputed logprobs of every token given those before it, at `temperature`; index 0 of each row is 0. */
  logprobs(rows: readonly Int32Array[], temperature: number): Promise<Float32Array[]>
  /** Makes the trainer's weights the ones that sample; resolves to their version. */
  publish(): Promise<number>
  /** Writes weights and optimiser state; the folder appears whole or not at all. */
  save(directory: string): Promise<void>
  load(directory: string): Promise<void>
  /** A fresh optimiser state, as at the start of a phase. */
  resetOptimizer(): Promise<void>
}
