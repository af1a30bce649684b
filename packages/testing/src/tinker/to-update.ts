import type { Learner, LossDefinition, UpdateRequest } from '@aworld-train/core'
import type { TrainingSample } from '@aworld-train/protocol'
import type { ForwardBackwardCall } from './server-messages.ts'

/** How losses of tokens are added up: the mean of rows, each divided by the sum of its weights; or the sum of all. */
export type ServerReduction = 'row-mean' | 'sum'

export interface UpdateContext {
  readonly adam: Readonly<Record<string, number>>
  readonly reduction: ServerReduction
  readonly learner: Learner
}

/** Neither end of a ratio is ever clipped by this. */
const unclipped = { clipLow: 1, clipHigh: 1e9 }

/**
 * The update of a step over accumulated gradients. Each loss of the protocol is one of clipped ratios: cross-entropy is a ratio of 1,
 * importance sampling has no clips. Advantages are one number a row; other batches are refused.
 */
export async function toUpdate(calls: readonly ForwardBackwardCall[], { adam, reduction, learner }: UpdateContext): Promise<UpdateRequest> {
  const [first] = calls
  if (!first || calls.some(({ lossFunction }) => lossFunction !== first.lossFunction))
    throw new Error('A step takes gradients of one loss function.')
  const rows = calls.flatMap((call) => call.rows)
  const ids = rows.map(({ tokens, inputs }) => Int32Array.of(...tokens, inputs['target_tokens']!.at(-1)!))
  const now = first.lossFunction === 'cross_entropy' ? await learner.logprobs(ids, 1) : []
  const isSum = reduction === 'sum'
  const samples = rows.map(({ inputs }, row): TrainingSample => {
    const { weights, advantages, logprobs } = inputs
    if (isSum && advantages && weights) throw new Error('Unknown tensor: weights')
    const mask = advantages && !weights ? advantages.map((value) => Number(value !== 0)) : weights!.map((value) => Number(value !== 0))
    const factors = (advantages ?? weights)!.filter((_, at) => mask[at] === 1)
    if (new Set(factors).size > 1) throw new Error('Advantages within a row differ.')
    // A row-mean divides by the sum of the weights, so that only advantages weigh rows.
    const factor = advantages || isSum ? (factors[0] ?? 0) : 1
    const tokens = mask.reduce((sum, bit) => sum + bit, 0)
    return {
      version: 1,
      tokenIds: ids[row]!,
      lossMask: Uint8Array.of(0, ...mask),
      rolloutLogprobs: now[row] ?? Float32Array.of(0, ...logprobs!),
      weightVersions: [],
      reward: 0,
      advantage: isSum ? factor * tokensOf(rows) : tokens === 0 ? 0 : factor,
      group: 'group',
      agent: 'agent',
      policy: 'policy',
      provenance: { rollout: `row-${row}`, attempt: 0, taskId: `row-${row}`, sample: 0, turns: [0] },
    }
  })
  const { clip_low_threshold: low = 1 - unclipped.clipLow, clip_high_threshold: high = 1 + unclipped.clipHigh } = first.lossConfig
  const loss: LossDefinition = {
    kind: 'ppo-clip',
    clipLow: 1 - low,
    clipHigh: high - 1,
    klCoefficient: 0,
    entropyCoefficient: 0,
    aggregation: isSum ? 'token-mean' : 'sequence-mean',
  }
  const { learning_rate, beta1, beta2, eps, weight_decay } = adam as Record<string, number>
  return {
    samples,
    loss,
    optimizer: { learningRate: learning_rate!, betas: [beta1!, beta2!], epsilon: eps!, weightDecay: weight_decay!, maxGradNorm: 0 },
  }
}

/** Trained tokens of a batch, by which a token-mean divides. */
function tokensOf(rows: ForwardBackwardCall['rows']): number {
  const weighing = rows.flatMap(({ inputs }) => inputs['advantages'] ?? inputs['weights'] ?? [])
  return weighing.filter((value) => value !== 0).length
}
