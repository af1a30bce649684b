/** A mean with a 95 % interval. */
export interface MeanInterval {
  readonly mean: number
  readonly interval: [number, number]
}

const z95 = 1.959963984540054

/** Wilson's score interval of a proportion (Wilson 1927, doi:10.2307/2276774); [0, 1] without trials. */
export function wilsonInterval(successes: number, trials: number, z = z95): [number, number] {
  if (trials === 0) return [0, 1]
  const proportion = successes / trials
  const center = proportion + (z * z) / (2 * trials)
  const half = z * Math.sqrt((proportion * (1 - proportion)) / trials + (z * z) / (4 * trials * trials))
  const scale = 1 + (z * z) / trials
  return [Math.max(0, Math.min(proportion, (center - half) / scale)), Math.min(1, Math.max(proportion, (center + half) / scale))]
}

/**
 * Mean and 95 % interval. If all values are in [0, 1] the interval is too. It is then Wilson's; for values other than 0 and 1, with as many
 * trials as would give a proportion the variance of this mean (Franco and others 2019, PMC6690503). Other values have the normal interval.
 * A single one of these has no spread, and its interval is the value itself. Without values the mean is NaN.
 */
export function meanWithInterval(values: readonly number[]): MeanInterval {
  const count = values.length
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  if (count === 0) return { mean: Number.NaN, interval: [Number.NaN, Number.NaN] }
  if (values.every((value) => value === 0 || value === 1)) return { mean, interval: wilsonInterval(Math.round(mean * count), count) }
  const isBounded = values.every((value) => value >= 0 && value <= 1)
  if (count === 1) return { mean, interval: isBounded ? wilsonInterval(mean, 1) : [mean, mean] }
  const varianceOfMean = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1) / count
  const half = z95 * Math.sqrt(varianceOfMean)
  if (!isBounded || half === 0) return { mean, interval: [mean - half, mean + half] }
  const trials = (mean * (1 - mean)) / varianceOfMean
  return { mean, interval: wilsonInterval(mean * trials, trials) }
}

/**
 * Difference of two means, `after` less `before`, with a 95 % interval computed from theirs (MOVER: Zou and Donner 2008,
 * doi:10.1002/sim.3095; with Wilson's intervals it is Newcombe 1998, PMID 9839354). `correlation` is that of the values if both means are
 * of the same things. With normal intervals it is the interval of paired differences.
 */
export function differenceOfMeans(after: MeanInterval, before: MeanInterval, correlation = 0): MeanInterval {
  const mean = after.mean - before.mean
  const distance = (a: number, b: number) => Math.sqrt(Math.max(0, a * a + b * b - 2 * correlation * a * b))
  const down = distance(after.mean - after.interval[0], before.interval[1] - before.mean)
  const up = distance(after.interval[1] - after.mean, before.mean - before.interval[0])
  return { mean, interval: [mean - down, mean + up] }
}

/** Difference of the means of two lists, `after` less `before`, with a 95 % interval. Values at equal places belong together. */
export function pairedDifference(after: readonly number[], before: readonly number[]): MeanInterval {
  return differenceOfMeans(meanWithInterval(after), meanWithInterval(before), correlationOf(after, before))
}

/** Pearson's correlation; 0 if the values of a list are all equal. */
function correlationOf(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [a, b].map((values) => values.reduce((sum, value) => sum + value, 0) / values.length) as [number, number]
  let together = 0
  let squaresA = 0
  let squaresB = 0
  for (const [index, value] of a.entries()) {
    const [fromA, fromB] = [value - meanA, (b[index] as number) - meanB]
    together += fromA * fromB
    squaresA += fromA ** 2
    squaresB += fromB ** 2
  }
  return squaresA === 0 || squaresB === 0 ? 0 : together / Math.sqrt(squaresA * squaresB)
}

/** Unbiased estimate of the chance that one of `k` samples is right, from `right` of `samples`: 1 - C(n - c, k) / C(n, k) (arXiv 2107.03374). */
export function passAtK(samples: number, right: number, k: number): number {
  if (!(Number.isInteger(k) && k >= 1 && k <= samples && right >= 0 && right <= samples)) {
    throw new RangeError(`pass@${k} needs 1 <= k <= ${samples} samples and 0 <= ${right} right; use more samples or a smaller k.`)
  }
  let allWrong = 1
  for (let i = 0; i < k; i++) allWrong *= Math.max(0, samples - right - i) / (samples - i)
  return 1 - allWrong
}

/** Values of k that reports name. */
const reportedKs = [1, 2, 4, 8, 16, 32, 64]

/** pass@k for k of 1, 2, 4 …, each as the values of the tasks that have as many samples. A sample is right with reward 1 or more. */
export function passRates(tasks: readonly (readonly number[])[]): Record<string, readonly number[]> {
  const samples = Math.max(0, ...tasks.map(({ length }) => length))
  return Object.fromEntries(
    reportedKs
      .filter((k) => k <= samples)
      .map((k) => [
        String(k),
        tasks
          .filter(({ length }) => length >= k)
          .map((rewards) => passAtK(rewards.length, rewards.filter((reward) => reward >= 1).length, k)),
      ]),
  )
}
