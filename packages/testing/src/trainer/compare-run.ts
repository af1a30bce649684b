import { aggregateLoss, lossWeights, type RowSelection, type TrainerRow, toTrainerRows } from '@aworld-train/core'
import { type ReferenceModel, readReferenceModel, readWeights } from './reference-model.ts'
import type { TrainedBatch, TrainedRow, TrainedRun, TrainerArithmetic } from './trained-run.ts'
import { groupOf } from './trainer-exam.ts'

/** A row of an episode, with the reference's values for it. */
interface ExpectedRow extends TrainerRow {
  readonly rollout: string
  readonly advantage: number
}

/** A row of a batch and the row of an episode that it must be. */
export interface RowPair {
  readonly step: number
  readonly trained: TrainedRow
  readonly expected: ExpectedRow
}

const unlimited = { maxPromptTokens: Number.POSITIVE_INFINITY, maxResponseTokens: Number.POSITIVE_INFINITY }

/** How rewards become advantages: by leave-one-out, or relative to the group with this epsilon. */
export type Normalization = number | 'leave-one-out'

/**
 * (reward - mean) / (standard deviation of n - 1 + epsilon) over a group (GRPO, arXiv 2402.03300), or
 * reward - mean of the others (RLOO, arXiv 2402.14740).
 */
function expectedAdvantage(reward: number, rewards: readonly number[], normalization: Normalization): number {
  const total = rewards.reduce((sum, each) => sum + each, 0)
  if (normalization === 'leave-one-out') return reward - (total - reward) / (rewards.length - 1)
  const mean = total / rewards.length
  const variance = rewards.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (rewards.length - 1)
  return (reward - mean) / (Math.sqrt(variance) + normalization)
}

/** The rows of a step's episodes without the failed ones. Advantages are by the group of a task, in any order. */
function expectedRows(run: TrainedRun, step: number, rows: RowSelection, normalization: Normalization): ExpectedRow[] {
  const episodes = run.episodes.filter((each) => each.step === step).map(({ episode }) => episode)
  const made = episodes.map((episode) => toTrainerRows(episode, { rows, limits: unlimited, evaluation: false, reward: 'service' }))
  const isDone = episodes.map((_, index) => made[index]!.status === 'done')
  return episodes.flatMap(({ rollout }, index) => {
    const group = episodes.flatMap((each, at) => (groupOf(each.rollout) === groupOf(rollout) ? [at] : []))
    if (!isDone[index] || (run.replacesGroups && !group.every((at) => isDone[at]))) return []
    const rewards = group.filter((at) => isDone[at]).map((at) => episodes[at]!.reward!)
    return made[index]!.rows.map((row) => ({ ...row, rollout, advantage: expectedAdvantage(row.reward!, rewards, normalization) }))
  })
}

/** Pairs each row of a batch with the row of an episode that has its ids. Throws where ids or masks differ, or a row is missing or left over. */
export function pairRows(run: TrainedRun, batch: TrainedBatch, rows: RowSelection, normalization: Normalization): RowPair[] {
  const { step } = batch
  const open = expectedRows(run, step, rows, normalization)
  const pairs = batch.rows.map((trained, index) => {
    const same = open.filter((each) => isEqual(each.tokenIds, trained.tokenIds))
    if (same.length === 0) throw new Error(`Row ${index} of step ${step} has ids that no episode has: ${trained.tokenIds.join(' ')}.`)
    const fitting = same.filter((each) => isEqual(each.lossMask, trained.mask))
    if (fitting.length === 0)
      throw new Error(
        `Row ${index} of step ${step} trains ${sum(trained.mask)} tokens, and ${sum(same[0]!.lossMask)} others or fewer were sampled.`,
      )
    // Two samples of a task may have the same tokens and other rewards.
    const advantage = advantageOf(trained)
    const expected = fitting.reduce((best, each) =>
      Math.abs(each.advantage - advantage) < Math.abs(best.advantage - advantage) ? each : best,
    )
    open.splice(open.indexOf(expected), 1)
    return { step, trained, expected }
  })
  if (open.length > 0) throw new Error(`Step ${step} lacks ${open.length} rows, the first of rollout "${open[0]!.rollout}".`)
  return pairs
}

const isEqual = (a: ArrayLike<number>, b: ArrayLike<number>) => a.length === b.length && Array.from(a).every((value, i) => value === b[i])
const sum = (values: ArrayLike<number>) => Array.from(values).reduce((total, value) => total + value, 0)
const advantageOf = ({ advantages, mask }: TrainedRow) => advantages[mask.indexOf(1)] ?? 0

/** Largest |derivative| of the loss by a logprob outside the mask, and the smallest inside where there is an advantage; `null` where none is shown. */
export function gradientsOf(pairs: readonly RowPair[]): { readonly outside: number; readonly inside: number } | null {
  if (pairs.some(({ trained }) => trained.gradients === null)) return null
  const at = (bit: 0 | 1) =>
    pairs
      .filter(({ expected }) => bit === 0 || expected.advantage !== 0)
      .flatMap(({ trained: { gradients, mask } }) => gradients!.filter((_, i) => mask[i] === bit).map(Math.abs))
  return { outside: Math.max(0, ...at(0)), inside: Math.min(...at(1)) }
}

/** Largest difference of an advantage. */
export const advantageDifference = (pairs: readonly RowPair[]) =>
  Math.max(
    ...pairs.flatMap(({ trained, expected }) =>
      trained.advantages.filter((_, i) => trained.mask[i] === 1).map((value) => Math.abs(value - expected.advantage)),
    ),
  )

/** Largest differences from the reference of the logprobs of trained tokens: of those that the trainer had, `null` where it shows none, and of those that were sampled. */
export function logprobDifferences(
  pairs: readonly RowPair[],
  reference: ReferenceModel,
): { readonly trained: number | null; readonly sampled: number } {
  let [trained, sampled]: [number | null, number] = [null, 0]
  for (const pair of pairs) {
    const exact = reference.logprobs(Array.from(pair.expected.tokenIds))
    for (const [i, bit] of pair.trained.mask.entries()) {
      if (bit === 0) continue
      sampled = Math.max(sampled, Math.abs(pair.expected.rolloutLogprobs[i]! - exact[i]!))
      const own = pair.trained.logprobs?.[i]
      if (own !== undefined) trained = Math.max(trained ?? 0, Math.abs(own - exact[i]!))
    }
  }
  return { trained, sampled }
}

/** Largest difference of sampled logprobs and the trainer's; `null` where it shows none. */
export function gapOf(pairs: readonly RowPair[]): number | null {
  const differences = pairs.flatMap(({ trained: { logprobs, mask }, expected }) =>
    logprobs === null ? [] : logprobs.flatMap((value, i) => (mask[i] === 1 ? [Math.abs(value - expected.rolloutLogprobs[i]!)] : [])),
  )
  return differences.length === 0 ? null : Math.max(...differences)
}

/** Pairs whose sampled tokens were mixed up: of one row a token stands in the place of its neighbour, and its logprob stays. */
export function withShiftedToken(pairs: readonly RowPair[]): RowPair[] {
  let isDone = false
  return pairs.map((pair) => {
    const tokenIds = Int32Array.from(pair.expected.tokenIds)
    const mask = pair.expected.lossMask
    const at = tokenIds.findIndex((id, i) => i > 0 && mask[i] === 1 && mask[i - 1] === 1 && id !== tokenIds[i - 1])
    if (isDone || at < 0) return pair
    isDone = true
    const here = tokenIds[at]!
    tokenIds[at] = tokenIds[at - 1]!
    tokenIds[at - 1] = here
    return { ...pair, expected: { ...pair.expected, tokenIds } }
  })
}

/** The loss of an update on the policy that sampled, where every ratio is exp(logprob - sampled logprob) and none is clipped. */
export function expectedLoss(pairs: readonly RowPair[], reference: ReferenceModel, { lossMean }: TrainerArithmetic): number {
  const losses = pairs.map(({ expected }) =>
    reference
      .logprobs(Array.from(expected.tokenIds))
      .map((logprob, i) => -expected.advantage * Math.exp(logprob - expected.rolloutLogprobs[i]!)),
  )
  return aggregateLoss(
    losses,
    pairs.map(({ expected }) => expected.lossMask),
    lossMean,
  )
}

/** Cosine of the first update, weights after it minus weights before, and Adam's first step on the reference's gradient. */
export async function updateDirection(
  pairs: readonly RowPair[],
  { before, after }: { readonly before: string; readonly after: string },
  { lossMean, adamEpsilon }: TrainerArithmetic,
): Promise<number> {
  const reference = await readReferenceModel(before)
  const weights = lossWeights(
    pairs.map(({ expected }) => expected),
    lossMean,
  )
  for (const [row, { expected }] of pairs.entries()) {
    const { tokenIds, lossMask, advantage } = expected
    reference.addGradient(
      Array.from(tokenIds),
      Array.from(lossMask, (bit) => -bit * advantage * weights[row]!),
    )
  }
  const updated = await readWeights(after)
  let [product, ours, theirs] = [0, 0, 0]
  for (const [name, { data, gradient }] of reference.weights) {
    const moved = updated.get(name)
    // A tied head may be written beside the table that it is.
    if (moved === undefined) throw new Error(`The weights after the update lack ${name}.`)
    for (const [i, slope] of gradient.entries()) {
      const expected = -slope / (Math.abs(slope) + adamEpsilon)
      const change = moved.data[i]! - data[i]!
      product += expected * change
      ours += expected ** 2
      theirs += change ** 2
    }
  }
  return product / Math.sqrt(ours * theirs)
}
