import type { Arena } from '../arena.ts'
import { attentionScratchBytes, gemmScratchBytes, roundUp } from '../kernels/sizes.ts'
import { attentionWidths, type ModelConfig } from '../model-config.ts'

/** The data of one layer's forward pass that the backward pass needs. Values are addresses; rows are tokens. */
export interface LayerActivations {
  /** Input of the layer [tokens, hidden]. */
  readonly input: number
  /** q|k|v as multiplied [tokens, fused]. */
  readonly projected: number
  /** q|k normalised and rotated, and v. The same buffer as `projected` without q/k-norm. */
  readonly rotated: number
  /** [tokens, query] */
  readonly attended: number
  /** After attention's residual [tokens, hidden]. From here on the last layer holds only the selected positions. */
  readonly middle: number
  /** [tokens, 2 * intermediate] */
  readonly gateUp: number
  /** 1 / root mean square of each token at both norms, and of each head. */
  readonly inputScales: number
  readonly postScales: number
  readonly headScales: number
}

export interface TrainingScratch {
  /** int32 [tokens]: positions of the pass whose next token is scored. After the last attention only these rows continue. */
  readonly selected: number
  /** Attended states of the selected positions in the last layer [tokens, query]. */
  readonly attendedSelected: number
  readonly gemm: number
  readonly attention: number
  readonly layers: readonly LayerActivations[]
  /** Output of the last layer [tokens, hidden], and its scales. */
  readonly final: number
  readonly finalScales: number
  /** [tokens, hidden] */
  readonly normed: number
  /** [tokens, intermediate] */
  readonly activated: number
  /** Gradients with respect to the like-named activations. */
  readonly normedGradient: number
  readonly residualGradient: number
  readonly gateUpGradient: number
  readonly activatedGradient: number
  readonly attendedGradient: number
  readonly rotatedGradient: number
  /** The gathered path of one row [context, fused]. */
  readonly path: number
  readonly pathGradient: number
  /** Logits of the scored positions, and the results of each. */
  readonly head: HeadScratch
}

export interface HeadScratch {
  /** Rows that go through the head at once. */
  readonly rows: number
  /** Floats of one row of logits, a multiple of 8. */
  readonly stride: number
  readonly logits: number
  /** int32 [rows] */
  readonly targets: number
  /** float32 [rows, 4]: the output of `headForward` for each row. */
  readonly stats: number
  /** float32 [rows, 2]: the input of `headBackward` for each row. */
  readonly coefficients: number
}

/** Number of rows of logits that are held at once: 64, or fewer for vocabularies whose logits would not stay in memory near the core. */
function headRows(vocabularySize: number): number {
  return vocabularySize <= 32_768 ? 64 : 32
}

/** Allocates the head's buffers, which sampling uses too. */
function allocateHead(arena: Arena, model: ModelConfig): HeadScratch {
  const rows = headRows(model.vocabularySize)
  const stride = roundUp(model.vocabularySize, 8)
  return {
    rows,
    stride,
    logits: arena.takeFloats(rows * stride),
    targets: arena.takeFloats(rows),
    stats: arena.takeFloats(4 * rows),
    coefficients: arena.takeFloats(2 * rows),
  }
}

/** Allocates all buffers of a forward and backward pass over at most `tokens` tokens. */
export function allocateTraining(arena: Arena, model: ModelConfig, tokens: number): TrainingScratch {
  const d = model.hiddenSize
  const { query, fused } = attentionWidths(model)
  const take = (width: number): number => arena.takeFloats(tokens * width)
  const layers = Array.from({ length: model.layers }, (): LayerActivations => {
    const projected = take(fused)
    return {
      input: take(d),
      projected,
      rotated: model.qkNorm ? take(fused) : projected,
      attended: take(query),
      middle: take(d),
      gateUp: take(2 * model.intermediateSize),
      inputScales: take(1),
      postScales: take(1),
      headScales: take(model.heads + model.kvHeads),
    }
  })
  return {
    gemm: arena.take(gemmScratchBytes()),
    attention: arena.take(attentionScratchBytes(model.contextLength, model.headDim)),
    layers,
    selected: take(1),
    attendedSelected: take(query),
    final: take(d),
    finalScales: take(1),
    normed: take(d),
    activated: take(model.intermediateSize),
    normedGradient: take(d),
    residualGradient: take(d),
    gateUpGradient: take(2 * model.intermediateSize),
    activatedGradient: take(model.intermediateSize),
    attendedGradient: take(query),
    rotatedGradient: take(fused),
    path: arena.takeFloats(model.contextLength * fused),
    pathGradient: arena.takeFloats(model.contextLength * fused),
    head: allocateHead(arena, model),
  }
}
