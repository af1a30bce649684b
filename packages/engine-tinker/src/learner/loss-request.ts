import {
  isClipped,
  type LossDefinition,
  lossWeights,
  maskedTokens,
  ppoClipLoss,
  trainedLength,
  type UpdateRequest,
} from '@aworld-train/core'
import { TrainError, type TrainingSample } from '@aworld-train/protocol'
import type { WireRow } from '../wire/messages.ts'

/**
 * How a server adds up the losses of tokens, by name: SkyRL divides those of a row by the sum of its weights and takes the mean of rows;
 * Thinking Machines' service takes the sum of all (tinker-docs.thinkingmachines.ai/losses) and knows no weights beside advantages.
 */
export const reductions = {
  'row-mean': {
    weighted: true,
    scale: (weight: number, tokens: number, rows: number) => weight * tokens * rows,
  },
  sum: {
    weighted: false,
    scale: (weight: number) => weight,
  },
} as const satisfies Record<string, { weighted: boolean; scale(weight: number, tokens: number, rows: number): number }>

export type LossReduction = keyof typeof reductions

/** A trained sample beside what goes over the wire for it. */
export interface LossRow {
  readonly sample: TrainingSample
  readonly index: number
  readonly wire: WireRow
}

export interface LossRequest {
  readonly lossFunction: string
  readonly lossConfig: Readonly<Record<string, number>>
  /** Samples with a trained token only: one without counts in the server's mean. */
  readonly rows: readonly LossRow[]
}

/** What a training asks for beside the clipped loss. */
export interface TrainingTerms {
  readonly klCoefficient: number
  readonly entropyCoefficient: number
  readonly maxGradNorm: number
  readonly weightDecay: number
  readonly temperature: number
}

/**
 * Refuses, with CONFIG_INVALID, what servers of the protocol lack, or take in silence and leave undone. A decay of weights reaches
 * other models of SkyRL.
 */
export function checkTerms({ temperature, ...terms }: TrainingTerms): void {
  const problems = Object.entries(terms).flatMap(([name, value]) => (value === 0 ? [] : [`training.${name} is ${value}; set it to 0`]))
  if (temperature !== 1) problems.push(`sampling.temperature is ${temperature}; set it to 1`)
  if (problems.length > 0) throw new TrainError('CONFIG_INVALID', `A Tinker service cannot train with this: ${problems.join(', ')}.`)
}

/** Refuses a configuration that no update could be made with, with CONFIG_INVALID; updates do so too. */
export function requireTinkerTraining({ training, sampling, evaluation }: TinkerTraining): void {
  const { klCoefficient, entropyCoefficient, maxGradNorm, weightDecay } = training
  checkTerms({ klCoefficient, entropyCoefficient, maxGradNorm, weightDecay, temperature: sampling.temperature })
  if (evaluation.temperature === 0 || evaluation.temperature === 1) return
  const message = `evaluation.temperature is ${evaluation.temperature}; a Tinker service reports logprobs of temperature 1, so set it to 1 or 0.`
  throw new TrainError('CONFIG_INVALID', message)
}

export interface TinkerTraining {
  readonly training: Omit<TrainingTerms, 'temperature'>
  readonly sampling: Pick<TrainingTerms, 'temperature'>
  readonly evaluation: Pick<TrainingTerms, 'temperature'>
}

/**
 * The rows and the loss whose gradient on the server is that of `loss` here. `logprobs` are what the learner has now, of the
 * rows of `needsLogprobs`.
 */
export function toLossRequest(
  { samples, loss }: Pick<UpdateRequest, 'samples' | 'loss'>,
  reduction: LossReduction,
  logprobs: readonly Float32Array[] = [],
): LossRequest {
  if (loss.kind === 'linear')
    throw new TrainError('CONFIG_INVALID', 'The learner of a Tinker service takes no linear loss; use "sft" or "ppo-clip".')
  const { weighted, scale } = reductions[reduction]
  const weights = lossWeights(samples, loss.aggregation)
  const trained = samples.flatMap((sample, index) => (maskedTokens(sample) > 0 ? [{ sample, index }] : []))
  const isCrossEntropy = loss.kind === 'sft' && !needsLogprobs(loss, reduction)
  const rows = trained.map(({ sample, index }, row) => {
    const length = trainedLength(sample)
    const factor = scale(weights[index]!, maskedTokens(sample), trained.length)
    const where = (values: (at: number) => number) =>
      Float32Array.from({ length: length - 1 }, (_, at) => (sample.lossMask[at + 1] === 1 ? values(at + 1) : 0))
    const old = loss.kind === 'sft' ? logprobs[row] : sample.rolloutLogprobs
    const advantage = (loss.kind === 'sft' ? 1 : (sample.advantage as number)) * factor
    const inputs: Record<string, Float32Array | Int32Array> = { target_tokens: sample.tokenIds.slice(1, length) }
    if (isCrossEntropy) inputs['weights'] = where(() => (weighted ? 1 : factor))
    else {
      if (weighted) inputs['weights'] = where(() => 1)
      inputs['logprobs'] = where((at) => old![at]!)
      inputs['advantages'] = where(() => advantage)
    }
    return { sample, index, wire: { tokens: sample.tokenIds.slice(0, length - 1), inputs } }
  })
  checkFinite(rows)
  return { rows, ...lossFunction(loss, isCrossEntropy) }
}

/**
 * Whether a supervised loss needs the logprobs of now: where the server divides by its weights, they cannot weigh rows against each
 * other, and the gradient is that of importance sampling at ratio 1, whose advantages can.
 */
export const needsLogprobs = (loss: LossDefinition, reduction: LossReduction): boolean =>
  loss.kind === 'sft' && loss.aggregation === 'token-mean' && reductions[reduction].weighted

function lossFunction(loss: LossDefinition, isCrossEntropy: boolean): Pick<LossRequest, 'lossFunction' | 'lossConfig'> {
  if (loss.kind !== 'ppo-clip') return { lossFunction: isCrossEntropy ? 'cross_entropy' : 'importance_sampling', lossConfig: {} }
  // Bounds of the ratio itself, not distances from 1.
  return { lossFunction: 'ppo', lossConfig: { clip_low_threshold: 1 - loss.clipLow, clip_high_threshold: 1 + loss.clipHigh } }
}

/** A server takes NaN without a word, and the next model in its slot is NaN too. */
function checkFinite(rows: readonly LossRow[]): void {
  for (const { sample, index, wire } of rows) {
    const bad = Object.entries(wire.inputs).find(([, values]) => !values.every(Number.isFinite))
    if (!bad) continue
    const where = `Sample ${index} (task "${sample.provenance.taskId}")`
    throw new TrainError(
      'TRAINER_NOT_FINITE',
      `${where} has ${bad[0]} that are not finite; nothing was sent, and the weights are as before.`,
    )
  }
}

export interface LossFigures {
  readonly loss: number
  readonly clipFraction: number
  /** Mean of -logprob over the trained tokens, which estimates the entropy from tokens that the policy drew. */
  readonly entropy: number
  readonly trainedTokens: number
}

/** What the loss was, from the logprobs that it had: of the trained tokens of each row. */
export function lossFigures(
  { loss, samples }: Pick<UpdateRequest, 'samples' | 'loss'>,
  rows: readonly LossRow[],
  logprobs: readonly Float32Array[],
): LossFigures {
  const weights = lossWeights(samples, loss.aggregation)
  let [sum, clipped, negative, tokens] = [0, 0, 0, 0]
  for (const [row, { sample, index }] of rows.entries()) {
    const old = sample.rolloutLogprobs.filter((_, at) => sample.lossMask[at] === 1)
    for (const [token, logprob] of logprobs[row]!.entries()) {
      tokens++
      negative -= logprob
      if (loss.kind === 'sft') sum -= weights[index]! * logprob
      else if (loss.kind === 'ppo-clip') {
        const advantage = sample.advantage as number
        sum += weights[index]! * ppoClipLoss(logprob, old[token]!, advantage, loss)
        clipped += Number(isClipped(logprob, old[token]!, advantage, loss))
      }
    }
  }
  return { loss: sum, clipFraction: clipped / tokens, entropy: negative / tokens, trainedTokens: tokens }
}
