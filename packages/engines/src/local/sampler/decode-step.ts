import { roundUp } from '../kernels/sizes.ts'
import { attentionWidths } from '../model-config.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import type { PublishedLayout, StepScratch } from './sampler-layout.ts'

/** Consecutive tokens of one row that a step feeds, from `position` in its row and `offset` in the step. */
export interface Segment {
  readonly row: number
  readonly position: number
  readonly count: number
  readonly offset: number
}

/** Feeds the segments' tokens (ids in `scratch.ids`): writes their keys and values into the rows' caches and leaves the states in `scratch.residual`. */
export function feedTokens(
  { kernels, layout, views }: WorkerContext,
  scratch: StepScratch,
  { parameters, packed }: PublishedLayout,
  segments: readonly Segment[],
): void {
  const { model, table, sampler, cosines, sines } = layout
  const { hiddenSize: d, intermediateSize: width, heads, kvHeads, headDim, rmsNormEps: epsilon } = model
  const { query, fused } = attentionWidths(model)
  const { residual, normed, projected, rotated, attended, gateUp, activated, gemm } = scratch
  const end = segments.at(-1)!
  const tokens = end.offset + end.count
  const weight = (offset: number): number => parameters + offset * 4
  let at = scratch.segments / 4
  for (const { position, count, offset, row } of segments) {
    views.i32[at++] = position
    views.i32[at++] = count
    views.i32[at++] = offset
    views.i32[at++] = row
  }
  kernels.gatherRows(tokens, d, scratch.ids, weight(table.embedding), residual)
  for (let layer = 0; layer < model.layers; layer++) {
    const offsets = table.layers[layer]!
    const pack = packed.layers[layer]!
    const queryNorm = model.qkNorm ? weight(offsets.queryNorm) : 0
    const keyNorm = model.qkNorm ? weight(offsets.keyNorm) : 0
    kernels.rmsNorm(tokens, d, residual, weight(offsets.inputNorm), normed, 0, epsilon)
    kernels.gemmPacked(tokens, fused, d, normed, d, pack.qkv, projected, fused, 0, gemm)
    kernels.attendSegments(
      ...([segments.length, scratch.segments, heads, kvHeads, headDim, projected, rotated, attended] as const),
      ...([queryNorm, keyNorm, epsilon, cosines, sines] as const),
      ...([sampler.cache + layer * sampler.cacheLayerBytes, sampler.cacheRowBytes, sampler.cacheHeadBytes, scratch.scores] as const),
    )
    kernels.gemmPacked(tokens, d, query, attended, query, pack.output, residual, d, 1, gemm)
    kernels.rmsNorm(tokens, d, residual, weight(offsets.postNorm), normed, 0, epsilon)
    kernels.gemmPacked(tokens, 2 * width, d, normed, d, pack.gateUp, gateUp, 2 * width, 0, gemm)
    kernels.swiGlu(tokens, width, gateUp, activated)
    kernels.gemmPacked(tokens, d, width, activated, width, pack.down, residual, d, 1, gemm)
  }
}

/** Logits after the last token of each segment, `scratch.logits` [segments, vocabulary rounded up to 8]. */
export function computeLogits(
  { kernels, layout }: WorkerContext,
  scratch: StepScratch,
  { parameters, packed }: PublishedLayout,
  segments: readonly Segment[],
): void {
  const { model, table } = layout
  const { hiddenSize: d, vocabularySize, rmsNormEps } = model
  const rows = segments.length
  for (let i = 0; i < rows; i++) {
    const { offset, count } = segments[i]!
    kernels.copy(scratch.last + i * d * 4, scratch.residual + (offset + count - 1) * d * 4, d)
  }
  kernels.rmsNorm(rows, d, scratch.last, parameters + table.finalNorm * 4, scratch.normed, 0, rmsNormEps)
  kernels.gemmPacked(rows, vocabularySize, d, scratch.normed, d, packed.head, scratch.logits, roundUp(vocabularySize, 8), 0, scratch.gemm)
}
