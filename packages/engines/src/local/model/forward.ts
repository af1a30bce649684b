import { forEachRow, type MicroBatch, type PassContext } from './pass.ts'

/**
 * Runs the layers over a micro-batch. Afterwards `scratch.normed` holds the final normed states of the `selected` positions (see
 * `selectPositions`), in their order, and the rest of the scratch holds the inputs of `backward`.
 */
export function forward(context: PassContext, batch: MicroBatch, selected: number): void {
  const { kernels, layout, scratch } = context
  const { model, table, parameters } = layout
  const d = model.hiddenSize
  const last = model.layers - 1
  const ids = layout.batch.tokens + batch.firstToken * 4
  kernels.gatherRows(batch.tokens, d, ids, parameters + table.embedding * 4, scratch.layers[0]!.input)
  for (let layer = 0; layer <= last; layer++) {
    attend(context, batch, layer)
    const { input, attended, middle } = scratch.layers[layer]!
    if (layer < last) {
      kernels.copy(middle, input, batch.tokens * d)
      feedForward(context, { layer, rows: batch.tokens, attended, out: scratch.layers[layer + 1]!.input })
    } else {
      kernels.gatherRows(selected, d, scratch.selected, input, middle)
      kernels.gatherRows(selected, context.widths.query, scratch.selected, attended, scratch.attendedSelected)
      feedForward(context, { layer, rows: selected, attended: scratch.attendedSelected, out: scratch.final })
    }
  }
  const norm = parameters + table.finalNorm * 4
  kernels.rmsNorm(selected, d, scratch.final, norm, scratch.normed, scratch.finalScales, model.rmsNormEps)
}

function attend(context: PassContext, batch: MicroBatch, layer: number): void {
  const { kernels, layout, scratch, widths } = context
  const { model, table, parameters, packed, cosines, sines } = layout
  const { hiddenSize: d, heads, kvHeads, headDim, rmsNormEps: epsilon } = model
  const at = table.layers[layer]!
  const layerScratch = scratch.layers[layer]!
  const queryNorm = model.qkNorm ? parameters + at.queryNorm * 4 : 0
  const keyNorm = model.qkNorm ? parameters + at.keyNorm * 4 : 0
  kernels.rmsNorm(batch.tokens, d, layerScratch.input, parameters + at.inputNorm * 4, scratch.normed, layerScratch.inputScales, epsilon)
  kernels.gemmPacked(batch.tokens, widths.fused, d, scratch.normed, d, packed.layers[layer]!.qkv, layerScratch.projected, widths.fused, 0, scratch.gemm)
  forEachRow(context, batch, ({ first, count, shared, path }) => {
    const q = first * widths.fused * 4
    const scales = layerScratch.headScales + first * (heads + kvHeads) * 4
    kernels.rotateHeads(
      ...([count, shared, heads, kvHeads, headDim, layerScratch.projected + q, layerScratch.rotated + q] as const),
      ...([queryNorm, keyNorm, scales, epsilon, cosines, sines] as const),
    )
    if (shared > 0) kernels.gatherRows(shared + count, widths.fused, path, layerScratch.rotated, scratch.path)
    const rotated = shared > 0 ? scratch.path : layerScratch.rotated + q
    // The kernel skips the rows of shared tokens, so that its own are at their places.
    const attended = layerScratch.attended + (first - shared) * widths.query * 4
    kernels.attention(shared + count, shared, heads, kvHeads, headDim, rotated, attended, scratch.attention)
  })
}

interface FeedForwardRows {
  readonly layer: number
  readonly rows: number
  /** Addresses of the attended states, and of the layer's output. */
  readonly attended: number
  readonly out: number
}

/** Adds the attended states to the residual stream in `middle`, then the feed-forward branch into `out`. */
function feedForward({ kernels, layout, scratch, widths }: PassContext, { layer, rows, attended, out }: FeedForwardRows): void {
  const { model, table, parameters, packed } = layout
  const { hiddenSize: d, intermediateSize: width } = model
  const at = table.layers[layer]!
  const pack = packed.layers[layer]!
  const layerScratch = scratch.layers[layer]!
  kernels.gemmPacked(rows, d, widths.query, attended, widths.query, pack.output, layerScratch.middle, d, 1, scratch.gemm)
  kernels.rmsNorm(rows, d, layerScratch.middle, parameters + at.postNorm * 4, scratch.normed, layerScratch.postScales, model.rmsNormEps)
  kernels.gemmPacked(rows, 2 * width, d, scratch.normed, d, pack.gateUp, layerScratch.gateUp, 2 * width, 0, scratch.gemm)
  kernels.swiGlu(rows, width, layerScratch.gateUp, scratch.activated)
  kernels.copy(out, layerScratch.middle, rows * d)
  kernels.gemmPacked(rows, d, width, scratch.activated, width, pack.down, out, d, 1, scratch.gemm)
}
