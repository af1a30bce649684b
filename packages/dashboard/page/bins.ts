/** A stretch of values, with its most surprising one. */
export interface Bin {
  readonly start: number
  readonly value: number
}

/** At most `count` bins over `values`, each with its least value and the place of that. */
export function leastOfBins(values: readonly number[], count: number): Bin[] {
  const size = Math.max(1, Math.ceil(values.length / count))
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) => {
    let start = index * size
    for (let at = start; at < Math.min(values.length, (index + 1) * size); at++) if (values[at]! < values[start]!) start = at
    return { start, value: values[start]! }
  })
}
