/** Counts equal requests of one rollout. */
export interface Occurrences {
  /** The least number, from 0, that no equal request has. */
  take(key: string): number
  /** Gives a number back whose request got no lasting answer, so that its repetition gets the number. */
  giveBack(key: string, occurrence: number): void
}

export function createOccurrences(): Occurrences {
  const counts = new Map<string, { next: number; readonly free: number[] }>()
  return {
    take(key) {
      const count = counts.get(key) ?? { next: 0, free: [] }
      counts.set(key, count)
      if (count.free.length === 0) return count.next++
      const least = Math.min(...count.free)
      count.free.splice(count.free.indexOf(least), 1)
      return least
    },
    giveBack(key, occurrence) {
      counts.get(key)?.free.push(occurrence)
    },
  }
}
