import {
  allDone,
  type Learner,
  meansByName,
  type PolicyLoss,
  type TrainingSample,
  type UpdateMetrics,
  updateWithLoss,
} from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import { sampleKey } from './training-sample.ts'
import { truncateRatios } from './truncate-ratios.ts'

export interface UpdateInput {
  readonly learner: Learner
  /** Required if `klCoefficient` is not 0. */
  readonly reference?: Pick<Learner, 'logprobs'> | undefined
  readonly groups: readonly (readonly TrainingSample[])[]
  readonly settings: TrainingSettings
  /** Default: the loss in the box. */
  readonly loss?: PolicyLoss | null | undefined
  readonly learningRate: number
  readonly temperature: number
}

export interface UpdateSummary {
  readonly updates: number
  /** Tokens with loss in the first pass, as the loss counted them. Later passes train the same tokens again. */
  readonly trainedTokens: number
  /** Fraction of the trained tokens whose ratio was truncated; `null` if all are of the weights that the updates began with. */
  readonly truncatedRatios: number | null
  readonly metrics: MeanMetrics
  /** Of each policy by its name. */
  readonly byPolicy: ReadonlyMap<string, MeanMetrics & Pick<UpdateMetrics, 'trainedTokens'>>
  /** Logprobs of the loss in the first pass, if the learner keeps them: those of each sample's trained tokens, by `sampleKey`. */
  readonly logprobs: ReadonlyMap<string, Float32Array>
}

type MeanMetrics = Omit<UpdateMetrics, 'trainedTokens' | 'logprobs' | 'named'> & Readonly<Record<`loss/${string}`, number>>

/**
 * Goes over the batch of a step `passes` times, with `promptsPerUpdate` groups an update, in the order of the groups. Each policy has an update
 * of its own over its samples, so that its gradient and its means are those of its samples alone.
 */
export async function updatePolicy(input: UpdateInput): Promise<UpdateSummary> {
  const { learner, groups, settings, learningRate, loss } = input
  const { clipLow, clipHigh, klCoefficient, entropyCoefficient, aggregation } = settings
  const terms = { klCoefficient, entropyCoefficient, aggregation }
  const minibatches = await Promise.all(
    chunk(groups, settings.promptsPerUpdate ?? groups.length).map(async (part) => {
      const { samples, truncated } = await withTruncatedRatios(input, part.flat())
      const ofPolicies = Map.groupBy(samples, policyOf).values()
      const policies = await Promise.all(
        Array.from(ofPolicies, async (own) => ({ samples: own, referenceLogprobs: await referenceLogprobs(input, own) })),
      )
      return { policies, truncated }
    }),
  )
  // In the order of the batch, whichever update ends first.
  const seen = new Map<string, UpdateMetrics[]>(groups.flat().map((sample) => [policyOf(sample), []]))
  const logprobs = new Map<string, Float32Array>()
  let trainedTokens = 0
  for (let pass = 0; pass < settings.passes; pass++) {
    for (const { policies } of minibatches) await allDone(policies.map((part) => updateOne(part, pass)))
  }
  const truncated = minibatches.reduce((sum, minibatch) => sum + minibatch.truncated, 0)
  const truncatedRatios = settings.maxStaleness === 0 ? null : truncated / Math.max(1, trainedTokens)
  const byPolicy = new Map(
    Array.from(seen, ([policy, metrics]) => {
      // A token is trained in every pass and counts once.
      const tokens = metrics.reduce((sum, each) => sum + each.trainedTokens, 0) / settings.passes
      return [policy, { ...summarizeUpdates(metrics), trainedTokens: tokens }]
    }),
  )
  const updates = settings.passes * minibatches.length
  return { updates, trainedTokens, truncatedRatios, metrics: summarizeUpdates([...seen.values()].flat()), byPolicy, logprobs }

  async function updateOne({ samples, referenceLogprobs }: PolicyPart, pass: number): Promise<void> {
    const request = {
      samples,
      ...(referenceLogprobs ? { referenceLogprobs } : {}),
      temperature: input.temperature,
      optimizer: {
        learningRate,
        betas: settings.betas,
        epsilon: settings.epsilon,
        weightDecay: settings.weightDecay,
        maxGradNorm: settings.maxGradNorm,
      },
    }
    const metrics = loss
      ? await updateWithLoss(learner, { ...request, ...terms, loss })
      : await learner.update({ ...request, loss: { kind: 'ppo-clip', clipLow, clipHigh, ...terms } })
    if (pass === 0) {
      trainedTokens += metrics.trainedTokens
      for (const [i, row] of metrics.logprobs?.entries() ?? []) logprobs.set(sampleKey(samples[i]!), row)
    }
    seen.get(policyOf(samples[0]!))!.push(metrics)
  }
}

interface PolicyPart {
  readonly samples: readonly TrainingSample[]
  readonly referenceLogprobs: readonly Float32Array[] | undefined
}

/** Truncates the ratios of a batch. Without staleness every token is of the current weights, and its ratio is 1. */
async function withTruncatedRatios({ learner, settings, temperature }: UpdateInput, samples: readonly TrainingSample[]) {
  if (settings.maxStaleness === 0) return { samples, truncated: 0 }
  const rows = samples.map((sample) => sample.tokenIds)
  return truncateRatios(samples, await learner.logprobs(rows, temperature, samples.map(policyOf)))
}

async function referenceLogprobs({ reference, settings, temperature }: UpdateInput, samples: readonly TrainingSample[]) {
  if (settings.klCoefficient === 0 || !reference) return undefined
  return await reference.logprobs(
    samples.map((sample) => sample.tokenIds),
    temperature,
    samples.map(policyOf),
  )
}

const policyOf = ({ policy }: TrainingSample) => policy

/** Means over updates, weighted by their tokens. `gradNorm` and metrics that a loss of one's own names are means over the updates. */
export function summarizeUpdates(seen: readonly UpdateMetrics[]): MeanMetrics {
  const tokens = seen.reduce((sum, { trainedTokens }) => sum + trainedTokens, 0)
  const weighted = (key: 'loss' | 'clipFraction' | 'entropy' | 'kl') =>
    seen.reduce((sum, metrics) => sum + metrics[key] * metrics.trainedTokens, 0) / Math.max(1, tokens)
  const norms = seen.flatMap(({ gradNorm }) => gradNorm ?? [])
  return {
    loss: weighted('loss'),
    ...(norms.length > 0 && { gradNorm: norms.reduce((sum, norm) => sum + norm, 0) / norms.length }),
    clipFraction: weighted('clipFraction'),
    entropy: weighted('entropy'),
    kl: weighted('kl'),
    ...Object.fromEntries(Object.entries(meansByName(seen.map(({ named = {} }) => named))).map(([name, mean]) => [`loss/${name}`, mean])),
  }
}

function chunk<T>(items: readonly T[], size: number): T[][] {
  const chunks: T[][] = []
  for (let i = 0; i < items.length; i += size) chunks.push(items.slice(i, i + size))
  return chunks
}
