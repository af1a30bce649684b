import { forEachRow, type MicroBatch, type PassContext } from './pass.ts'

/**
 * Adds the gradient that follows from `scratch.normedGradient` to the buffer at `gradients`. Call it right after `forward` and the head.
 */
export function backward(context: PassContext, batch: MicroBatch, selected: number, gradients: number): void {
  const { kernels, layout, scratch } = context
  const { model, table, parameters } = layout
  const d = model.hiddenSize
  const last = model.layers - 1
  const final = table.finalNorm * 4
  kernels.rmsNormBackward(
    ...([selected, d, scratch.final, parameters + final, scratch.finalScales, scratch.normedGradient] as const),
    ...([scratch.residualGradient, gradients + final, 0] as const),
  )
  for (let layer = last; layer >= 0; layer--) {
    const rows = layer === last ? selected : batch.tokens
    feedForwardBackward(context, rows, layer, gradients)
    const attended = layer === last ? scratch.attendedSelected : scratch.layers[layer]!.attended
    outputBackward(context, { rows, layer, attended, gradients })
    if (layer === last) spreadSelected(context, batch, selected)
    attentionBackward(context, batch, layer, gradients)
  }
  const ids = layout.batch.tokens + batch.firstToken * 4
  kernels.scatterAddRows(batch.tokens, d, ids, scratch.residualGradient, gradients + table.embedding * 4)
}

/** Moves the gradients of the selected positions to their places in the pass, with zeros between them. */
function spreadSelected({ kernels, layout, scratch, widths }: PassContext, batch: MicroBatch, selected: number): void {
  const d = layout.model.hiddenSize
  // Two buffers that are rewritten later hold the compact rows meanwhile.
  const spread = (width: number, rows: number, compact: number): void => {
    kernels.copy(compact, rows, selected * width)
    kernels.zero(rows, batch.tokens * width)
    kernels.scatterAddRows(selected, width, scratch.selected, compact, rows)
  }
  spread(d, scratch.residualGradient, scratch.normedGradient)
  spread(widths.query, scratch.attendedGradient, scratch.rotatedGradient)
}

interface OutputRows {
  readonly rows: number
  readonly layer: number
  readonly attended: number
  readonly gradients: number
}

/** The backward pass of attention's output projection. */
function outputBackward({ kernels, layout, scratch, widths }: PassContext, { rows, layer, attended, gradients }: OutputRows): void {
  const { hiddenSize: d } = layout.model
  const { query } = widths
  const weight = layout.table.layers[layer]!.output * 4
  const { residualGradient, attendedGradient, gemm } = scratch
  kernels.gemm(0, 0, rows, query, d, residualGradient, d, layout.parameters + weight, query, attendedGradient, query, 0, gemm)
  kernels.gemm(1, 0, d, query, rows, residualGradient, d, attended, query, gradients + weight, query, 1, gemm)
}

/** The gradient of the residual stream passes through. The norm's backward adds that of the branch to it. */
function feedForwardBackward({ kernels, layout, scratch }: PassContext, n: number, layer: number, gradients: number): void {
  const { model, table, parameters } = layout
  const { hiddenSize: d, intermediateSize: width, rmsNormEps: epsilon } = model
  const at = table.layers[layer]!
  const layerScratch = scratch.layers[layer]!
  const { normed, normedGradient, residualGradient, gateUpGradient, activated, activatedGradient, gemm } = scratch
  kernels.gemm(0, 0, n, width, d, residualGradient, d, parameters + at.down * 4, width, activatedGradient, width, 0, gemm)
  kernels.swiGluBackward(n, width, layerScratch.gateUp, activatedGradient, gateUpGradient, activated)
  kernels.gemm(1, 0, d, width, n, residualGradient, d, activated, width, gradients + at.down * 4, width, 1, gemm)
  kernels.rmsNorm(n, d, layerScratch.middle, parameters + at.postNorm * 4, normed, 0, epsilon)
  kernels.gemm(1, 0, 2 * width, d, n, gateUpGradient, 2 * width, normed, d, gradients + at.gateUp * 4, d, 1, gemm)
  kernels.gemm(0, 0, n, d, 2 * width, gateUpGradient, 2 * width, parameters + at.gateUp * 4, d, normedGradient, d, 0, gemm)
  const norm = at.postNorm * 4
  kernels.rmsNormBackward(n, d, layerScratch.middle, parameters + norm, layerScratch.postScales, normedGradient, residualGradient, gradients + norm, 1)
}

function attentionBackward(context: PassContext, batch: MicroBatch, layer: number, gradients: number): void {
  const { kernels, layout, scratch, widths } = context
  const { model, table, parameters } = layout
  const { hiddenSize: d, heads, kvHeads, headDim, rmsNormEps: epsilon } = model
  const { query, fused } = widths
  const { tokens: n } = batch
  const at = table.layers[layer]!
  const layerScratch = scratch.layers[layer]!
  const { normed, normedGradient, residualGradient, attendedGradient, rotatedGradient, gemm } = scratch
  kernels.zero(rotatedGradient, n * fused)
  const norms = (base: number, offset: number): number => (model.qkNorm ? base + offset * 4 : 0)
  forEachRow(context, batch, ({ first, count, shared, path }) => {
    const q = first * fused * 4
    const dOut = attendedGradient + (first - shared) * query * 4
    const length = shared + count
    if (shared === 0) {
      kernels.attentionBackward(count, 0, heads, kvHeads, headDim, layerScratch.rotated + q, dOut, rotatedGradient + q, scratch.attention)
      return
    }
    kernels.gatherRows(length, fused, path, layerScratch.rotated, scratch.path)
    kernels.zero(scratch.pathGradient, length * fused)
    kernels.attentionBackward(length, shared, heads, kvHeads, headDim, scratch.path, dOut, scratch.pathGradient, scratch.attention)
    kernels.scatterAddRows(length, fused, path, scratch.pathGradient, rotatedGradient)
  })
  forEachRow(context, batch, ({ first, count, shared }) => {
    const q = first * fused * 4
    kernels.rotateHeadsBackward(
      ...([count, shared, heads, kvHeads, headDim, layerScratch.projected + q, rotatedGradient + q] as const),
      ...([norms(parameters, at.queryNorm), norms(parameters, at.keyNorm), layerScratch.headScales + first * (heads + kvHeads) * 4] as const),
      ...([norms(gradients, at.queryNorm), norms(gradients, at.keyNorm), layout.cosines, layout.sines] as const),
    )
  })
  const norm = at.inputNorm * 4
  kernels.rmsNorm(n, d, layerScratch.input, parameters + norm, normed, 0, epsilon)
  kernels.gemm(1, 0, fused, d, n, rotatedGradient, fused, normed, d, gradients + at.qkv * 4, d, 1, gemm)
  kernels.gemm(0, 0, n, d, fused, rotatedGradient, fused, parameters + at.qkv * 4, d, normedGradient, d, 0, gemm)
  kernels.rmsNormBackward(n, d, layerScratch.input, parameters + norm, layerScratch.inputScales, normedGradient, residualGradient, gradients + norm, 1)
}
