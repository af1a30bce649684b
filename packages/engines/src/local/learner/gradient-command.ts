import { shardResultDoubles } from '../layout.ts'
import { backward } from '../model/backward.ts'
import { forward } from '../model/forward.ts'
import { runHead, selectPositions } from '../model/head.ts'
import { createPassContext, type PassContext, passOf } from '../model/pass.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import { lossKinds, setting, shardResult } from './settings.ts'
import { likelihoodLoss, linearLoss, policyLoss, type TokenLoss } from './token-loss.ts'

/** Adds the gradient of the batch's loss to the shards' buffers, the sums of the metrics to their results, and writes the logprob of every trained token to `batch.logprobs`. */
export function gradientCommand(worker: WorkerContext): void {
  const { layout, views } = worker
  const { shards } = layout.options
  const context = createPassContext(worker)
  const occurrences = layout.batch.occurrences / 4
  const shardPasses = layout.batch.shardPasses / 4
  for (let shard = worker.nextTask(); shard < shards; shard = worker.nextTask()) {
    const results = layout.shardResults / 8 + shard * shardResultDoubles
    const gradients = layout.gradients + shard * layout.parameterBytes
    for (let pass = views.i32[shardPasses + shard]!; pass < views.i32[shardPasses + shard + 1]!; pass++) {
      const batch = passOf(worker, pass)
      const tokens = selectPositions(context, batch, (token) => views.i32[occurrences + token]! < views.i32[occurrences + token + 1]!)
      if (tokens.length === 0) continue
      forward(context, batch, tokens.length)
      headGradient(context, tokens, gradients, results)
      backward(context, batch, tokens.length, gradients)
    }
  }
}

function headGradient(context: PassContext, selected: readonly number[], gradients: number, results: number): void {
  const { layout, views, scratch } = context
  const { f32, f64, i32 } = views
  const occurrences = layout.batch.occurrences / 4
  const settings = layout.settings / 8
  const weights = layout.batch.weights / 4
  const logprobs = layout.batch.logprobs / 4
  const stats = scratch.head.stats / 4
  const coefficients = scratch.head.coefficients / 4
  const entropyCoefficient = f64[settings + setting.entropyCoefficient]!
  const lossOf = tokenLoss(context)
  runHead(context, selected, {
    inverseTemperature: f64[settings + setting.inverseTemperature]!,
    gradients,
    onBlock: (tokens) => {
      for (let i = 0; i < tokens.length; i++) {
        const token = tokens[i]!
        const logprob = f32[stats + 4 * i + 2]!
        const entropy = f32[stats + 4 * i + 3]!
        f32[logprobs + token] = logprob
        let gradient = 0
        let weightSum = 0
        for (let at = i32[occurrences + token]!; at < i32[occurrences + token + 1]!; at++) {
          const weight = f32[weights + at]!
          const { loss, logprobGradient, clipped, kl } = lossOf(at, logprob)
          gradient += weight * logprobGradient
          weightSum += weight
          f64[results + shardResult.loss]! += weight * (loss - entropyCoefficient * entropy)
          f64[results + shardResult.kl]! += kl
          f64[results + shardResult.entropy]! += entropy
          f64[results + shardResult.clipped]! += clipped
          f64[results + shardResult.tokens]! += 1
        }
        f32[coefficients + 2 * i] = gradient
        f32[coefficients + 2 * i + 1] = -weightSum * entropyCoefficient
      }
    },
  })
}

function tokenLoss({ layout, views }: PassContext): (token: number, logprob: number) => TokenLoss {
  const { f32, f64 } = views
  const read = (name: keyof typeof setting): number => f64[layout.settings / 8 + setting[name]]!
  const { weights, rolloutLogprobs, advantages, referenceLogprobs } = layout.batch
  const kind = lossKinds[read('lossKind')]!
  if (kind === 'sft') return (_token, logprob) => likelihoodLoss(logprob)
  // The coefficient is a derivative of the batch's loss, so the weight of a token must not count in it.
  if (kind === 'linear') return (token, logprob) => linearLoss(logprob, f32[advantages / 4 + token]! / f32[weights / 4 + token]!)
  const clipLow = read('clipLow')
  const clipHigh = read('clipHigh')
  const klCoefficient = read('klCoefficient')
  const hasReference = read('hasReference') !== 0
  return (token, logprob) =>
    policyLoss({
      logprob,
      rolloutLogprob: f32[rolloutLogprobs / 4 + token]!,
      advantage: f32[advantages / 4 + token]!,
      referenceLogprob: hasReference ? f32[referenceLogprobs / 4 + token]! : null,
      clipLow,
      clipHigh,
      klCoefficient,
    })
}
