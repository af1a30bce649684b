import type { Trajectory } from '../protocol/episode.ts'

/** An invocation among those of its episode. */
export interface PlacedInvocation<Invocation> {
  readonly invocation: Invocation
  /** Number of invocations above it, of which each asked for the next one. */
  readonly depth: number
}

/**
 * The invocations of an episode as a tree in reading order: below each one those that its tool calls asked for, in the order of the calls.
 * One that took over an answer is beside the one that gave it. What has no order by calls has that of its beginning. Agents that were never
 * started are left out, unless none was.
 */
export function invocationTree<Invocation extends Omit<Trajectory, 'version'>>(
  trajectories: readonly Invocation[],
): PlacedInvocation<Invocation>[] {
  const started = trajectories.filter(({ turns, timing, startedBy }) => turns.length > 0 || timing !== null || startedBy.length > 0)
  const invocations = started.length > 0 ? started : trajectories
  const byId = new Map(invocations.map((invocation) => [invocation.id, invocation]))
  const startOf = ({ startedBy }: Invocation) => startedBy.find(({ trajectory }) => byId.has(trajectory))
  const callerOf = (invocation: Invocation): Invocation | undefined => {
    const passed = new Set<Invocation>()
    for (let each = invocation; !passed.has(each); ) {
      const start = startOf(each)
      const by = start && byId.get(start.trajectory)
      if (!by || start.toolCall !== null) return by
      passed.add(each)
      each = by
    }
    return undefined
  }
  /** When it was asked for, and by which of the calls of that turn; or when it began. */
  const orderOf = (invocation: Invocation): readonly [at: number, call: number] => {
    const start = startOf(invocation)
    const turn = start && start.toolCall !== null && byId.get(start.trajectory)!.turns.find(({ index }) => index === start.turn)
    if (!turn) return [invocation.timing?.startedAt ?? Number.MAX_VALUE, 0]
    return [turn.timing.endedAt, turn.toolCalls.findIndex(({ id }) => id === start.toolCall)]
  }
  const ordered = invocations
    .map((invocation) => ({ invocation, order: orderOf(invocation) }))
    .sort(({ order: a }, { order: b }) => a[0] - b[0] || a[1] - b[1])
    .map(({ invocation }) => invocation)
  const below = Map.groupBy(ordered, callerOf)
  const depths = new Map<Invocation, number>()
  const place = (invocation: Invocation, depth: number) => {
    if (depths.has(invocation)) return
    depths.set(invocation, depth)
    for (const each of below.get(invocation) ?? []) place(each, depth + 1)
  }
  for (const root of below.get(undefined) ?? []) place(root, 0)
  // Those of a record in which each was asked for by the other.
  for (const invocation of ordered) place(invocation, 0)
  return Array.from(depths, ([invocation, depth]) => ({ invocation, depth }))
}
