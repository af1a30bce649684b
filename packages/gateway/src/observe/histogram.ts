/** Seconds: from the overhead of a short answer to a completion of hours. */
export const secondsBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800] as const

/** Counts of values by upper bound; observing one costs a few comparisons. */
export interface Histogram {
  observe(value: number): void
  /** How many values are at most each bound, all of them, and their sum. */
  read(): { readonly cumulative: readonly number[]; readonly count: number; readonly sum: number }
}

export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Float64Array(bounds.length + 1)
  let sum = 0
  return {
    observe(value) {
      let index = 0
      while (index < bounds.length && value > bounds[index]!) index++
      counts[index]!++
      sum += value
    },
    read() {
      let count = 0
      const all = Array.from(counts, (each) => {
        count += each
        return count
      })
      return { cumulative: all.slice(0, -1), count, sum }
    },
  }
}
