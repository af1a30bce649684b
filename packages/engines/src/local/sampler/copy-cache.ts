import type { Layout } from '../layout.ts'

/** Copies the keys and values of positions [from, to) from one row's cache to another's. Both rows begin with the same `to` tokens. */
export function copyCache(
  { sampler, model }: Layout,
  floats: Float32Array,
  { source, target, from, to }: { readonly source: number; readonly target: number; readonly from: number; readonly to: number },
): void {
  const { cache, cacheRowBytes, cacheHeadBytes, cacheLayerBytes } = sampler
  const { layers, kvHeads, headDim } = model
  // Keys are in panels of eight positions, which are copied whole. Positions beyond `to` in the last one are written when they are
  // computed.
  const panel = 8 * headDim
  const key = [Math.floor(from / 8) * panel, Math.ceil(to / 8) * panel] as const
  const value = [from * headDim, to * headDim] as const
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < 2 * kvHeads; head++) {
      const offset = (cache + layer * cacheLayerBytes + head * cacheHeadBytes) / 4
      const [start, end] = head < kvHeads ? key : value
      const sourceAt = offset + (source * cacheRowBytes) / 4
      floats.copyWithin(offset + (target * cacheRowBytes) / 4 + start, sourceAt + start, sourceAt + end)
    }
  }
}
