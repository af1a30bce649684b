import type { LossDefinition, UpdateRequest } from '../contracts/learner.ts'
import type { ModelDescription } from '../contracts/token-engine.ts'
import { TrainError } from '../protocol/errors.ts'
import type { TrainingSample } from '../protocol/training-sample.ts'
import { checkLoss } from './check-loss.ts'

type Model = Pick<ModelDescription, 'contextLength' | 'vocabularySize'>

/** Throws for a request that cannot be trained on: TRAINER_EMPTY_BATCH, TRAINER_SAMPLE_INVALID, POLICY_CONTEXT_OVERFLOW, CONFIG_INVALID. */
export function checkUpdate(request: UpdateRequest, model: Model): void {
  const { samples, loss, optimizer, referenceLogprobs, temperature = 1 } = request
  checkLoss(loss)
  checkOptimizer(optimizer)
  if (!(Number.isFinite(temperature) && temperature >= 0)) {
    throw new TrainError('CONFIG_INVALID', `The temperature of the update is ${temperature}; it must be a number from 0 up.`)
  }
  if (samples.length === 0) throw new TrainError('TRAINER_EMPTY_BATCH', 'The update has no samples; read why the rollouts failed.')
  samples.forEach((sample, index) => {
    checkSample(sample, index, loss.kind, model)
  })
  if (!samples.some((sample) => sample.lossMask.includes(1))) {
    throw new TrainError('TRAINER_EMPTY_BATCH', `None of the ${samples.length} samples has a token with loss mask 1; nothing was trained.`)
  }
  if (loss.kind === 'linear') checkFit(loss.coefficients, 'coefficients', samples)
  checkReference(referenceLogprobs, loss.kind === 'ppo-clip' ? loss.klCoefficient : 0, samples)
}

/** Throws for references that do not fit the samples, or that a term needs and are not there. */
export function checkReference(
  references: UpdateRequest['referenceLogprobs'],
  klCoefficient: number,
  samples: readonly TrainingSample[],
): void {
  if (references) checkFit(references, 'referenceLogprobs', samples)
  else if (klCoefficient !== 0) {
    throw new TrainError(
      'CONFIG_INVALID',
      `klCoefficient is ${klCoefficient} but the update has no referenceLogprobs; pass them, or set it to 0.`,
    )
  }
}

/** Throws for rows that the model cannot score. */
export function checkRows(rows: readonly Int32Array[], model: Model): void {
  rows.forEach((tokenIds, index) => {
    checkTokens(tokenIds, `Row ${index}`, model)
  })
}

function checkTokens(tokenIds: Int32Array, name: string, model: Model): void {
  if (tokenIds.length > model.contextLength) {
    throw new TrainError(
      'POLICY_CONTEXT_OVERFLOW',
      `${name} has ${tokenIds.length} tokens and the model's context is ${model.contextLength}; shorten it.`,
    )
  }
  if (tokenIds.length === 0) throw new TrainError('TRAINER_SAMPLE_INVALID', `${name} has no tokens; leave it out.`)
  for (let i = 0; i < tokenIds.length; i++) {
    const id = tokenIds[i]!
    if (id >= 0 && id < model.vocabularySize) continue
    throw new TrainError('TRAINER_SAMPLE_INVALID', `${name} has token id ${id} at ${i}; the vocabulary has ${model.vocabularySize} tokens.`)
  }
}

const nameOf = ({ provenance }: TrainingSample, index: number) => `Sample ${index} (task "${provenance.taskId}")`

function checkSample(sample: TrainingSample, index: number, kind: LossDefinition['kind'], model: Model): void {
  const name = nameOf(sample, index)
  const { tokenIds, lossMask } = sample
  checkTokens(tokenIds, name, model)
  const invalid = (what: string): TrainError => new TrainError('TRAINER_SAMPLE_INVALID', `${name} ${what}`)
  if (lossMask.length !== tokenIds.length)
    throw invalid(`has ${tokenIds.length} tokens and a loss mask of ${lossMask.length}; make them equal.`)
  if (lossMask[0] === 1) throw invalid('trains its first token, which nothing predicts; set its loss mask to 0.')
  if (kind === 'ppo-clip') checkScored(sample, index)
}

/** Throws for a sample that has not what the loss of a policy compares. */
export function checkScored(sample: TrainingSample, index: number): void {
  const { tokenIds, rolloutLogprobs, advantage } = sample
  const invalid = (what: string): TrainError => new TrainError('TRAINER_SAMPLE_INVALID', `${nameOf(sample, index)} ${what}`)
  if (rolloutLogprobs.length !== tokenIds.length) {
    throw invalid(`has ${tokenIds.length} tokens and ${rolloutLogprobs.length} rolloutLogprobs; make them equal.`)
  }
  if (advantage === null) throw invalid('has no advantage; compute it before the update.')
}

function checkFit(rows: readonly Float32Array[], name: string, samples: readonly TrainingSample[]): void {
  const wrong = samples.findIndex((sample, i) => rows?.[i]?.length !== sample.tokenIds.length)
  if (wrong < 0 && rows.length === samples.length) return
  throw new TrainError(
    'TRAINER_SAMPLE_INVALID',
    `${name} do not fit sample ${Math.max(wrong, 0)}; pass one row a sample, one number a token.`,
  )
}

function checkOptimizer({ learningRate, betas, epsilon, weightDecay, maxGradNorm }: UpdateRequest['optimizer']): void {
  const finite = [learningRate, ...betas, epsilon, weightDecay, maxGradNorm].every((value) => Number.isFinite(value) && value >= 0)
  if (finite && betas[0] < 1 && betas[1] < 1 && epsilon > 0) return
  const shown = JSON.stringify({ learningRate, betas, epsilon, weightDecay, maxGradNorm })
  throw new TrainError(
    'CONFIG_INVALID',
    `The optimiser settings ${shown} are out of range: all at least 0, betas below 1, epsilon above 0.`,
  )
}
