import { type MicroBatch, type PassContext, rowStart } from './pass.ts'

/**
 * The tokens of a micro-batch (indices into the batch) that `wants` asks for. The first token of a row has no logprob. Writes the positions
 * that predict them to `scratch.selected`.
 */
export function selectPositions(context: PassContext, batch: MicroBatch, wants: (token: number) => boolean): number[] {
  const { scratch, views } = context
  const { batch: at } = context.layout
  const tokens: number[] = []
  for (let row = batch.firstRow; row < batch.endRow; row++) {
    const start = rowStart(context, row)
    const shared = views.i32[at.shared / 4 + row]!
    const path = at.paths / 4 + views.i32[at.pathStarts / 4 + row]!
    const count = rowStart(context, row + 1) - start
    for (let i = shared === 0 ? 1 : 0; i < count; i++) {
      if (!wants(start + i)) continue
      views.i32[scratch.selected / 4 + tokens.length] = views.i32[path + shared + i - 1]!
      tokens.push(start + i)
    }
  }
  return tokens
}

/** Options of the head over the selected positions. */
export interface HeadOptions {
  readonly inverseTemperature: number
  /** Called for each block of scored tokens (indices into the batch) after `headForward`. */
  readonly onBlock: (tokens: readonly number[]) => void
  /** Address of the gradient buffer to add to. Without it nothing is differentiated. */
  readonly gradients?: number
}

/**
 * Scores the selected tokens, a block at a time, so that logits never leave the block. With `gradients`, `onBlock` writes `coefficients`,
 * from which the head's gradient and `scratch.normedGradient` are computed.
 */
export function runHead(context: PassContext, selected: readonly number[], { inverseTemperature, onBlock, gradients }: HeadOptions): void {
  const { kernels, layout, scratch, views } = context
  const { model, table, parameters, packed } = layout
  const { hiddenSize: d, vocabularySize: vocabulary } = model
  const { stride, logits, targets, stats, coefficients, ...head } = scratch.head
  const weight = table.head * 4
  for (let first = 0; first < selected.length; first += head.rows) {
    const tokens = selected.slice(first, first + head.rows)
    const rows = tokens.length
    const hidden = scratch.normed + first * d * 4
    tokens.forEach((token, i) => {
      views.i32[targets / 4 + i] = views.i32[layout.batch.tokens / 4 + token]!
    })
    kernels.gemmPacked(rows, vocabulary, d, hidden, d, packed.head, logits, stride, 0, scratch.gemm)
    kernels.headForward(rows, vocabulary, stride, inverseTemperature, logits, targets, stats)
    onBlock(tokens)
    if (gradients === undefined) continue
    kernels.headBackward(rows, stride, inverseTemperature, logits, targets, stats, coefficients)
    const hiddenGradient = scratch.normedGradient + first * d * 4
    kernels.gemm(0, 0, rows, d, vocabulary, logits, stride, parameters + weight, d, hiddenGradient, d, 0, scratch.gemm)
    kernels.gemm(1, 0, vocabulary, d, rows, logits, stride, hidden, d, gradients + weight, d, 1, scratch.gemm)
  }
}
