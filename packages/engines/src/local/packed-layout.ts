import type { Arena } from './arena.ts'
import { packedFloats } from './kernels/sizes.ts'
import { attentionWidths, type ModelConfig } from './model-config.ts'

/** Addresses of forward weights packed for the matrix product. Sizes are in floats. */
export interface PackedLayout {
  readonly address: number
  readonly bytes: number
  readonly layers: readonly { readonly qkv: number; readonly output: number; readonly gateUp: number; readonly down: number }[]
  readonly head: number
}

/** Offsets of packed forward weights relative to `address`. A second copy (published weights) can reuse them. */
export function layoutPacked(arena: Arena, model: ModelConfig): PackedLayout {
  const { query, fused } = attentionWidths(model)
  const address = arena.take(0)
  const take = (inputs: number, outputs: number): number => arena.takeFloats(packedFloats(inputs, outputs))
  const layers = Array.from({ length: model.layers }, () => ({
    qkv: take(model.hiddenSize, fused),
    output: take(query, model.hiddenSize),
    gateUp: take(model.hiddenSize, 2 * model.intermediateSize),
    down: take(model.intermediateSize, model.hiddenSize),
  }))
  const head = take(model.hiddenSize, model.vocabularySize)
  return { address, bytes: arena.used - address, layers, head }
}
