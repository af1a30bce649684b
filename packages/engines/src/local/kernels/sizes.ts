/** Constants of assembly/gemm.ts that determine sizes of buffers. `kernels.test.ts` checks them against the modules. */
const panelColumns = 8
const blockDepth = 256
const blockRows = 96
const blockColumns = 512
const edgeBytes = 4_096
/** Query rows that attention multiplies at once. */
const attentionRows = 32

export const roundUp = (n: number, multiple: number): number => Math.ceil(n / multiple) * multiple

/** Floats of a weight matrix [outputs, inputs] packed by `prepack`. */
export function packedFloats(inputs: number, outputs: number): number {
  return inputs * roundUp(outputs, panelColumns)
}

/** Bytes of scratch that `gemm` needs for any size: the edge, one packed block of A and one of B. */
export function gemmScratchBytes(): number {
  return edgeBytes + 4 * (blockRows * blockDepth + blockDepth * (blockColumns + panelColumns))
}

/** Bytes of scratch that `attention` and `attentionBackward` need for rows of up to `tokens` tokens. */
export function attentionScratchBytes(tokens: number, headDim: number): number {
  const padded = roundUp(tokens, 8)
  const left = Math.max(blockRows * blockDepth, (attentionRows + 4) * padded)
  const panels = 2 * padded * headDim + roundUp(headDim, 8) * padded
  return edgeBytes + 4 * (left + panels + 2 * attentionRows * padded + roundUp(headDim, 8) * attentionRows + 64)
}
