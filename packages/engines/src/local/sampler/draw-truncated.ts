export interface Truncation {
  /** 0 keeps every token. */
  readonly topK: number
  /** 1 keeps every token. */
  readonly topP: number
}

/**
 * Draws an id from unnormalised `weights`, cut to the `topK` largest and then to the smallest set that holds at least `topP` of their sum
 * (nucleus sampling, Holtzman et al., 2020). Of equal weights the lower id comes first. `uniform` is in [0, 1).
 */
export function drawTruncated(weights: Float32Array, { topK, topP }: Truncation, uniform: number): number {
  const ids = Uint32Array.from(weights, (_, id) => id).sort((a, b) => weights[b]! - weights[a]! || a - b)
  const kept = topK > 0 ? ids.subarray(0, topK) : ids
  let limit = topP * sumOf(weights, kept)
  let nucleus = 0
  while (nucleus < kept.length && limit > 0) limit -= weights[kept[nucleus++]!]!
  const choice = kept.subarray(0, Math.max(1, nucleus))
  let left = uniform * sumOf(weights, choice)
  for (const id of choice) {
    left -= weights[id]!
    if (left < 0) return id
  }
  return choice.at(-1)!
}

function sumOf(weights: Float32Array, ids: Uint32Array): number {
  let sum = 0
  for (const id of ids) sum += weights[id]!
  return sum
}
