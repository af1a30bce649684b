import { ppoClipGradient, type TrainingSample, type UpdateRequest } from '@aworld-train/core'
import type { ForwardBackwardCall } from './server-messages.ts'

/** How losses of tokens are summed: the mean of rows, each divided by the sum of its weights, or the sum of all. */
export type ServerReduction = 'row-mean' | 'sum'

/** A request for a gradient, and the logprob of each target token at its arrival. */
export interface AccumulatedCall extends ForwardBackwardCall {
  readonly logprobs: readonly Float32Array[]
}

export interface UpdateContext {
  readonly adam: Readonly<Record<string, number>>
  readonly reduction: ServerReduction
}

interface TokenTensors {
  readonly weight: number
  readonly advantage: number
  readonly old: number
}

/** The derivative of each loss of the protocol by the logprob of a token. */
const derivatives: Readonly<Record<string, (now: number, token: TokenTensors, config: Readonly<Record<string, number>>) => number>> = {
  cross_entropy: (_now, { weight }) => -weight,
  importance_sampling: (now, { weight, advantage, old }) => -weight * advantage * Math.exp(now - old),
  ppo: (now, { weight, advantage, old }, { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 }) =>
    weight * ppoClipGradient(now, old, advantage, { clipLow: 1 - low, clipHigh: high - 1 }),
}

/** The update of a step over accumulated gradients. */
export function toUpdate(calls: readonly AccumulatedCall[], { adam, reduction }: UpdateContext): UpdateRequest {
  const rows = calls.flatMap((call) => call.rows.map(({ tokens, inputs }, row) => ({ call, tokens, inputs, now: call.logprobs[row]! })))
  if (rows.length === 0) throw new Error('A step takes a gradient.')
  const coefficients = rows.map(({ call, inputs, now }) => {
    const { weights, advantages, logprobs } = inputs
    const derivative = derivatives[call.lossFunction]
    if (!derivative) throw new Error(`Unknown loss function: ${call.lossFunction}`)
    if (reduction === 'sum' && advantages && weights) throw new Error('Unknown tensor: weights')
    const divisor = reduction === 'sum' ? 1 : rows.length * Math.max(1e-9, weights?.reduce((sum, weight) => sum + weight, 0) ?? now.length)
    const tensors = (at: number) => ({ weight: weights?.[at] ?? 1, advantage: advantages?.[at] ?? 0, old: logprobs?.[at] ?? 0 })
    return Float32Array.of(0, ...now.map((logprob, at) => derivative(logprob, tensors(at), call.lossConfig) / divisor))
  })
  const samples = rows.map(
    ({ tokens, inputs }, row): TrainingSample => ({
      version: 2,
      tokenIds: Int32Array.of(...tokens, inputs['target_tokens']!.at(-1)!),
      lossMask: Uint8Array.from(coefficients[row]!, (value) => Number(value !== 0)),
      rolloutLogprobs: new Float32Array(tokens.length + 1),
      weightVersions: [],
      reward: 0,
      advantage: null,
      group: 'group',
      agent: 'agent',
      trajectory: 'agent',
      policy: 'policy',
      provenance: { rollout: `row-${row}`, attempt: 0, taskId: `row-${row}`, sample: 0, turns: [0] },
    }),
  )
  // A gradient of zeros is also a step, and a learner trains at least one token.
  if (samples.every(({ lossMask }) => !lossMask.includes(1))) samples[0]!.lossMask[1] = 1
  const { learning_rate, beta1, beta2, eps, weight_decay } = adam as Record<string, number>
  return {
    samples,
    loss: { kind: 'linear', coefficients, entropyCoefficient: 0, aggregation: 'token-mean' },
    optimizer: { learningRate: learning_rate!, betas: [beta1!, beta2!], epsilon: eps!, weightDecay: weight_decay!, maxGradNorm: 0 },
  }
}
