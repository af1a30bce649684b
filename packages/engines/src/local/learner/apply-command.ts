import { chunkFloats, shardResultDoubles } from '../layout.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import { packCommand } from './pack-command.ts'
import { setting, shardResult } from './settings.ts'

/** Sums the shards' gradients, clips by the global norm, and makes a step of AdamW. A loss or norm that is not finite changes nothing. */
export function applyCommand(worker: WorkerContext): void {
  const { kernels, layout, views, threadIndex, threads } = worker
  const { shards } = layout.options
  const { chunks, gradients, parameterBytes } = layout
  const chunkBytes = chunkFloats * 4
  const first = Math.floor((chunks * threadIndex) / threads)
  const end = Math.floor((chunks * (threadIndex + 1)) / threads)
  for (let chunk = first; chunk < end; chunk++) {
    kernels.reduceShards(shards, gradients, parameterBytes / 4, chunk * chunkFloats, (chunk + 1) * chunkFloats)
    views.f64[layout.chunkSums / 8 + chunk] = kernels.sumSquares(gradients + chunk * chunkBytes, chunkFloats)
  }
  worker.barrier()
  const norm = gradientNorm(worker)
  const applied = Number.isFinite(norm) && Number.isFinite(totalLoss(worker))
  if (applied) stepWeights(worker, { first, end, norm })
  for (let shard = 0; shard < shards; shard++) {
    kernels.zero(gradients + shard * parameterBytes + first * chunkBytes, (end - first) * chunkFloats)
  }
  if (threadIndex === 0) {
    views.f64[layout.settings / 8 + setting.gradNorm] = norm
    views.f64[layout.settings / 8 + setting.applied] = applied ? 1 : 0
  }
  worker.barrier()
  if (applied) packCommand(worker)
}

/** Every thread adds the same chunks in the same order, so all get the same bits. */
function gradientNorm({ layout, views }: WorkerContext): number {
  let sum = 0
  for (let chunk = 0; chunk < layout.chunks; chunk++) sum += views.f64[layout.chunkSums / 8 + chunk]!
  return Math.sqrt(sum)
}

function totalLoss({ layout, views }: WorkerContext): number {
  let sum = 0
  for (let shard = 0; shard < layout.options.shards; shard++) {
    sum += views.f64[layout.shardResults / 8 + shard * shardResultDoubles + shardResult.loss]!
  }
  return sum
}

function stepWeights({ kernels, layout, views }: WorkerContext, range: { first: number; end: number; norm: number }): void {
  const read = (name: keyof typeof setting): number => views.f64[layout.settings / 8 + setting[name]]!
  const limit = read('maxGradNorm')
  const scale = limit > 0 ? Math.min(1, limit / (range.norm + 1e-6)) : 1
  const beta1 = read('beta1')
  const beta2 = read('beta2')
  const step = read('step')
  const at = range.first * chunkFloats * 4
  kernels.adamw(
    ...([(range.end - range.first) * chunkFloats, layout.parameters + at, layout.gradients + at] as const),
    ...([layout.firstMoment + at, layout.secondMoment + at, read('learningRate'), beta1, beta2, read('epsilon')] as const),
    ...([read('weightDecay'), 1 / (1 - beta1 ** step), 1 / (1 - beta2 ** step), scale] as const),
  )
}
