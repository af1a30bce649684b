function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}

const bare = (name: string) => name.replaceAll('_', '').toLowerCase()

/** The known name closest to `name` by Levenshtein distance without case and underscores, else the shortest that contains it; `null` when none is near. */
export function suggest(name: string, names: readonly string[]): string | null {
  const target = bare(name)
  let best: { name: string; distance: number } | null = null
  for (const candidate of names) {
    const found = distance(target, bare(candidate))
    if (!best || found < best.distance) best = { name: candidate, distance: found }
  }
  if (!best) return null
  if (best.distance <= Math.max(2, Math.floor(target.length / 3))) return best.name
  const longer = target.length < 4 ? [] : names.filter((candidate) => bare(candidate).includes(target))
  return longer.sort((a, b) => a.length - b.length)[0] ?? null
}
