/** The replica that each rollout is pinned to. The table is bounded: the rollout whose last call is the oldest is forgotten first. */
export interface SessionTable {
  get(affinity: string): number | undefined
  pin(affinity: string, replica: number): void
  forget(affinity: string): void
  /** Rollouts pinned to a replica. */
  count(replica: number): number
  size(): number
}

export function createSessionTable(maxSessions: number): SessionTable {
  /** Ordered by the last call. */
  const table = new Map<string, number>()
  const counts: number[] = []
  const forget = (affinity: string): void => {
    const replica = table.get(affinity)
    if (replica === undefined) return
    table.delete(affinity)
    counts[replica] = (counts[replica] ?? 1) - 1
  }
  return {
    get: (affinity) => table.get(affinity),
    pin(affinity, replica) {
      // The order only matters if the table may become full.
      if (table.size < maxSessions / 2 && table.get(affinity) === replica) return
      forget(affinity)
      table.set(affinity, replica)
      counts[replica] = (counts[replica] ?? 0) + 1
      if (table.size > maxSessions) forget(table.keys().next().value as string)
    },
    forget,
    count: (replica) => counts[replica] ?? 0,
    size: () => table.size,
  }
}
