/** The candidate that `name` was probably meant to be; `null` if none is similar. */
export function suggest(name: string, candidates: Iterable<string>): string | null {
  const target = plain(name)
  let best: string | null = null
  let bestDistance = Math.max(1, Math.floor(target.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(target, plain(candidate), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** ` Did you mean "x"?`, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const candidate = suggest(name, candidates)
  return candidate === null ? '' : ` Did you mean "${candidate}"?`
}

const plain = (name: string) => name.toLowerCase().replace(/[\s_-]/g, '')

/**
 * Number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment). If it is not below `limit`, the result
 * is only at least `limit`.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      current[j] = Math.min(replace, previous[j]! + 1, current[j - 1]! + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        current[j] = Math.min(current[j]!, beforePrevious[j - 2]! + 1)
      }
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length]!
}
