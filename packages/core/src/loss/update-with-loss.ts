import type { Learner, UpdateMetrics, UpdateRequest } from '../contracts/learner.ts'
import type { PolicyLoss, PolicyLossRequest, PolicyLossRow, RowLoss } from '../contracts/policy-loss.ts'
import { errorMessage, TrainError } from '../protocol/errors.ts'
import { checkReference, checkScored } from './check-update.ts'
import { lossWeights, maskedTokens, trainedPositions } from './loss-weights.ts'
import { k3Divergence } from './policy-loss.ts'

/**
 * An update by a loss of one's own: a forward pass for the logprobs, the loss, and an update by its derivatives. LOSS_INVALID for a
 * loss that throws or answers something else than a finite number for every row and token; the weights are then as before.
 */
export async function updateWithLoss(
  learner: Pick<Learner, 'logprobs' | 'update'>,
  { loss, klCoefficient = 0, entropyCoefficient = 0, aggregation = 'token-mean', referenceLogprobs, ...request }: PolicyLossRequest,
): Promise<UpdateMetrics> {
  const { samples, temperature = 1 } = request
  samples.forEach(checkScored)
  checkReference(referenceLogprobs, klCoefficient, samples)
  const ids = samples.map(({ tokenIds }) => tokenIds)
  const current = await learner.logprobs(
    ids,
    temperature,
    samples.map(({ policy }) => policy),
  )
  const trained = samples.flatMap((sample, index) => {
    const positions = trainedPositions(sample)
    const at = (values: Float32Array) => Float64Array.from(positions, (position) => values[position]!)
    return positions.length === 0 ? [] : [{ sample, index, positions, at }]
  })
  const rowOf = ({ sample, index, at }: (typeof trained)[number]): PolicyLossRow => ({
    logprobs: at(current[index]!),
    rolloutLogprobs: at(sample.rolloutLogprobs),
    ...(referenceLogprobs && { referenceLogprobs: at(referenceLogprobs[index]!) }),
    advantage: sample.advantage!,
    reward: sample.reward,
    group: sample.group,
    sample: structuredClone(sample),
  })
  const answers = new Map<number, RowLoss>()
  const weights: number[] = []
  const shares: number[] = []
  const tokensOf = (rows: readonly number[]) => rows.reduce((sum, index) => sum + maskedTokens(samples[index]!), 0)
  const tokens = tokensOf([...samples.keys()])
  // The loss of a policy is that of its rows alone; the learner reports the mean over their tokens.
  for (const [policy, indices] of Map.groupBy(samples.keys(), (index) => samples[index]!.policy)) {
    const ownWeights = lossWeights(
      indices.map((index) => samples[index]!),
      aggregation,
    )
    const share = tokensOf(indices) / tokens
    for (const [place, index] of indices.entries()) {
      weights[index] = ownWeights[place]!
      shares[index] = share
    }
    const rows = trained.filter(({ sample }) => sample.policy === policy)
    const own = rows.length === 0 ? [] : answersOf(loss, rows.map(rowOf))
    for (const [place, { index }] of rows.entries()) answers.set(index, own[place]!)
  }
  const coefficients = ids.map((row) => new Float32Array(row.length))
  // What the loss is beyond the sum of coefficient * logprob, which the learner reports.
  let rest = 0
  let kl = 0
  for (const { index, positions } of trained) {
    const { loss: own, gradient } = answers.get(index)!
    const share = shares[index]!
    rest += share * own
    for (const [token, position] of positions.entries()) {
      const logprob = current[index]![position]!
      const reference = referenceLogprobs?.[index]?.[position] ?? logprob
      const weight = klCoefficient * weights[index]!
      const coefficient = gradient[token]! + weight * (1 - Math.exp(reference - logprob))
      const divergence = k3Divergence(logprob, reference)
      coefficients[index]![position] = coefficient
      rest += share * (weight * divergence - coefficient * logprob)
      kl += divergence
    }
  }
  const metrics = await learner.update({ ...request, loss: { kind: 'linear', coefficients, entropyCoefficient, aggregation } })
  const rows = trained.map(({ index }) => answers.get(index)!)
  const clipped = rows.reduce((sum, row) => sum + (row.clipped ?? 0), 0)
  const { trainedTokens } = metrics
  return {
    ...metrics,
    loss: metrics.loss + rest,
    clipFraction: clipped / trainedTokens,
    kl: kl / trainedTokens,
    named: meansByName(rows.map((row) => row.metrics ?? {})),
  }
}

/** Whether an update is by a loss of one's own. */
export const hasOwnLoss = (request: UpdateRequest | PolicyLossRequest): request is PolicyLossRequest => typeof request.loss === 'function'

/** What the loss answers, checked; it gets copies, and rows that it cannot put in another order. */
function answersOf(loss: PolicyLoss, rows: readonly PolicyLossRow[]): readonly RowLoss[] {
  const name = loss.name ? `The loss "${loss.name}"` : 'The loss'
  const refuse = (what: string, cause?: unknown): never => {
    throw new TrainError('LOSS_INVALID', `${name} ${what}; the weights are as before.`, { cause })
  }
  const tokens = rows.map(({ logprobs }) => logprobs.length)
  let answers: unknown
  try {
    answers = loss(Object.freeze(rows.map((row) => Object.freeze(row))))
  } catch (cause) {
    return refuse(`threw: ${errorMessage(cause)}`, cause)
  }
  if (!Array.isArray(answers)) {
    if (answers instanceof Promise) answers.catch(() => {})
    const shown = answers instanceof Promise ? 'a promise' : typeof answers === 'function' ? 'a function' : String(answers)
    return refuse(`answered ${shown} and must answer a list at once: { loss, gradient } for each of ${rows.length} rows`)
  }
  if (answers.length !== rows.length) refuse(`answered ${answers.length} rows for ${rows.length}`)
  for (const [index, answer] of (answers as readonly (RowLoss | undefined)[]).entries()) {
    const place = `row ${index} (task "${rows[index]!.sample.provenance.taskId}")`
    const { loss: own, gradient, clipped = 0, metrics = {} } = answer ?? ({} as Partial<RowLoss>)
    if (gradient?.length !== tokens[index])
      refuse(`answered ${gradient?.length ?? 'no'} derivatives for the ${tokens[index]} tokens of ${place}`)
    // A learner takes derivatives as float32.
    const derivatives = Array.from(gradient!, (value, token) => [`derivative ${token}`, Math.fround(value)] as const)
    const numbers = [['loss', own] as const, ['clipped', clipped] as const, ...Object.entries(metrics), ...derivatives]
    const bad = numbers.find(([, value]) => !Number.isFinite(value))
    if (bad) refuse(`answered ${bad[1]} as ${bad[0]} of ${place}`)
  }
  return answers
}

/** The mean of each number over the rows that have it. */
export function meansByName(rows: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(rows.flatMap((row) => Object.keys(row)))
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  return Object.fromEntries([...names].map((name) => [name, meanOf(rows.flatMap((row) => row[name] ?? []))]))
}
