import {
  isClipped,
  type LossDefinition,
  lossWeights,
  maskedTokens,
  ppoClipLoss,
  TrainError,
  type TrainingSample,
  trainedPositions,
  type UpdateRequest,
} from '@aworld-train/core'
import type { WireRow } from '../wire/messages.ts'
import { mergeRows, type SampleTerms } from './merge-rows.ts'

/**
 * How a server adds up the losses of tokens, by name: SkyRL divides those of a row by the sum of its weights and takes the mean of rows;
 * Thinking Machines' service takes the sum of all (tinker-docs.thinkingmachines.ai/losses) and knows no weights beside advantages.
 */
export const reductions = {
  'row-mean': {
    weighted: true,
    scale: (tokens: number, rows: number) => tokens * rows,
  },
  sum: {
    weighted: false,
    scale: () => 1,
  },
} as const satisfies Record<string, { weighted: boolean; scale(tokens: number, rows: number): number }>

export type LossReduction = keyof typeof reductions

/** What goes over the wire for samples that are equal for the loss; all have the logprobs that come back. */
export interface SentRow {
  readonly tokenIds: Int32Array
  readonly wire: WireRow
  /** Where the samples stand in their batch. */
  readonly members: readonly number[]
}

export interface LossRequest {
  readonly lossFunction: string
  readonly lossConfig: Readonly<Record<string, number>>
  /** Of samples with a trained token only: a row without one counts in the server's mean. */
  readonly rows: readonly SentRow[]
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

/** The rows and the loss whose gradient on the server is that of `loss` here; where it `needsLogprobs`, the tensor `logprobs` is still 0. */
export function toLossRequest({ samples, loss }: Pick<UpdateRequest, 'samples' | 'loss'>, reduction: LossReduction): LossRequest {
  const { weighted, scale } = reductions[reduction]
  const weights = lossWeights(samples, loss.aggregation)
  const isRatio = loss.kind === 'ppo-clip' || needsLogprobs(loss, reduction)
  const terms = samples.map((sample, index): SampleTerms => {
    const old = loss.kind === 'ppo-clip' ? sample.rolloutLogprobs : undefined
    return { sample, index, factor: factorOf(loss, sample, index, weights[index]!), old: (at) => old?.[at] ?? 0 }
  })
  const merged = mergeRows(
    terms.filter(({ sample }) => maskedTokens(sample) > 0),
    // Cross-entropy has no factor beside its weights, and a server that divides a row by them takes two equal rows for one.
    loss.kind === 'ppo-clip' ? 'of one sign' : isRatio || !weighted ? 'all' : 'none',
  )
  const rows = merged.map(({ tokenIds, lossMask, old, factors, members }): SentRow => {
    const factor = scale(maskedTokens({ lossMask }), merged.length)
    const mask = Float32Array.from(lossMask)
    const scaled = Float32Array.from(factors, (value) => value * factor)
    const tensors = isRatio
      ? { ...(weighted && { weights: mask }), logprobs: old, advantages: scaled }
      : { weights: weighted ? mask : scaled }
    const inputs = Object.entries({ target_tokens: tokenIds, ...tensors }).map(([name, values]) => [name, values.slice(1)])
    return { tokenIds, members, wire: { tokens: tokenIds.slice(0, -1), inputs: Object.fromEntries(inputs) } }
  })
  checkFinite(rows, samples, loss)
  return { rows, ...lossFunction(loss, isRatio) }
}

/** What a token's logprob, or its ratio to an older one, is multiplied with; the service makes the sum as large as it can. */
function factorOf(loss: LossDefinition, { advantage }: TrainingSample, index: number, weight: number): (at: number) => number {
  if (loss.kind === 'linear') return (at) => -loss.coefficients[index]![at]!
  return () => (loss.kind === 'sft' ? weight : weight * (advantage as number))
}

/**
 * Whether a loss of logprobs needs those of now. Where the server divides by its weights, they can neither weigh rows against each
 * other nor be negative, and the gradient is that of importance sampling at ratio 1, whose advantages can.
 */
export const needsLogprobs = (loss: LossDefinition, reduction: LossReduction): boolean =>
  reductions[reduction].weighted && (loss.kind === 'linear' || (loss.kind === 'sft' && loss.aggregation === 'token-mean'))

function lossFunction(loss: LossDefinition, isRatio: boolean): Pick<LossRequest, 'lossFunction' | 'lossConfig'> {
  if (loss.kind !== 'ppo-clip') return { lossFunction: isRatio ? 'importance_sampling' : 'cross_entropy', lossConfig: {} }
  // Bounds of the ratio itself, not distances from 1.
  return { lossFunction: 'ppo', lossConfig: { clip_low_threshold: 1 - loss.clipLow, clip_high_threshold: 1 + loss.clipHigh } }
}

/** Throws for numbers that are not finite. A server accepts NaN silently, and then the next model in its slot is NaN too. */
function checkFinite(rows: readonly SentRow[], samples: readonly TrainingSample[], { kind }: LossDefinition): void {
  for (const { members, wire } of rows) {
    const bad = Object.entries(wire.inputs).find(([, values]) => !values.every(Number.isFinite))
    if (!bad) continue
    const where = `Sample ${members[0]} (task "${samples[members[0]!]!.provenance.taskId}")`
    throw new TrainError(
      'TRAINER_NOT_FINITE',
      `${where} has ${kind === 'linear' ? 'coefficients' : bad[0]} that are not finite; nothing was sent, and the weights are as before.`,
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

/** What the loss was, from the logprobs that it had: of the trained tokens of each sample. */
export function lossFigures({ loss, samples }: Pick<UpdateRequest, 'samples' | 'loss'>, logprobs: readonly Float32Array[]): LossFigures {
  const weights = lossWeights(samples, loss.aggregation)
  let [sum, clipped, negative, tokens] = [0, 0, 0, 0]
  for (const [index, sample] of samples.entries()) {
    const { rolloutLogprobs, advantage } = sample
    for (const [token, at] of trainedPositions(sample).entries()) {
      const logprob = logprobs[index]![token]!
      tokens++
      negative -= logprob
      if (loss.kind === 'sft') sum -= weights[index]! * logprob
      else if (loss.kind === 'linear') sum += loss.coefficients[index]![at]! * logprob
      else {
        sum += weights[index]! * ppoClipLoss(logprob, rolloutLogprobs[at]!, advantage!, loss)
        clipped += Number(isClipped(logprob, rolloutLogprobs[at]!, advantage!, loss))
      }
    }
  }
  return { loss: sum, clipFraction: clipped / tokens, entropy: negative / tokens, trainedTokens: tokens }
}
