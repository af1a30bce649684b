import type { TrainingSample } from '../protocol/training-sample.ts'

/** One optimiser update over a batch. */
export type LossDefinition =
  | { readonly kind: 'sft'; readonly aggregation: LossAggregation }
  | {
      readonly kind: 'ppo-clip'
      readonly clipLow: number
      readonly clipHigh: number
      /** Weight of the k3 estimate of KL(policy, reference). 0 needs no reference. */
      readonly klCoefficient: number
      readonly entropyCoefficient: number
      readonly aggregation: LossAggregation
    }
  | {
      /** The sum of coefficient * logprob over the batch, which is all that remains of a loss once its derivatives are known. */
      readonly kind: 'linear'
      /** For each sample, the derivative of the batch's loss by the logprob of each of its tokens; read where the loss mask is 1. */
      readonly coefficients: readonly Float32Array[]
      readonly entropyCoefficient: number
      /** Weighs only the entropy; the coefficients are already weighed. */
      readonly aggregation: LossAggregation
    }

/** `token-mean`: every trained token of the batch weighs the same. `sequence-mean`: every sample does. */
export type LossAggregation = 'token-mean' | 'sequence-mean'

export interface OptimizerSettings {
  readonly learningRate: number
  readonly betas: readonly [number, number]
  readonly epsilon: number
  readonly weightDecay: number
  /** Bound of the global gradient norm; 0 for none. */
  readonly maxGradNorm: number
}

export interface UpdateRequest {
  readonly samples: readonly TrainingSample[]
  /** Logprobs of the reference policy per sample, only if `klCoefficient` is not 0. */
  readonly referenceLogprobs?: readonly Float32Array[]
  readonly loss: LossDefinition
  /** Logprobs in the loss are log-softmax of logits / temperature, as in `rolloutLogprobs`. Default 1. */
  readonly temperature?: number
  readonly optimizer: OptimizerSettings
}

export interface UpdateMetrics {
  readonly loss: number
  /** Absent if the learner does not know it. */
  readonly gradNorm?: number | undefined
  readonly clipFraction: number
  readonly entropy: number
  readonly kl: number
  /** Tokens that carried loss, as the loss counted them. */
  readonly trainedTokens: number
  /** For each sample, the loss's logprobs of the tokens with loss mask 1, in order. Absent if the learner does not keep them. */
  readonly logprobs?: readonly Float32Array[] | undefined
  /** Metrics of a loss of one's own, by name. */
  readonly named?: Readonly<Record<string, number>> | undefined
}

/** Trains a policy. `update` changes the trainer's weights, and sampling uses them after `publish`. */
export interface Learner {
  /**
   * Makes a gradient step over `samples`, in their order. Rejects for a loss that is not finite, or that the learner does not know
   * (CONFIG_INVALID), and leaves the weights unchanged.
   */
  update(request: UpdateRequest): Promise<UpdateMetrics>
  /**
   * Recomputes the logprob of every token given those before it, at `temperature`. Index 0 of each row is 0. `policies` names the policy of
   * each row, where there are several.
   */
  logprobs(rows: readonly Int32Array[], temperature: number, policies?: readonly string[]): Promise<Float32Array[]>
  /** Makes sampling use the trainer's weights; resolves to their version, which is at least `leastVersion`. */
  publish(leastVersion?: number): Promise<number>
  /** Writes weights and optimiser state. The folder appears whole or not at all. */
  save(directory: string): Promise<void>
  /**
   * Reads a checkpoint whole and takes it over once `agreed` resolves, at once without it. If it rejects, weights and optimiser are as
   * before.
   */
  load(directory: string, agreed?: () => Promise<void>): Promise<void>
  /** Resets the optimiser state, as at the start of a phase. */
  resetOptimizer(): Promise<void>
}
