import type { InvocationTrace } from '@aworld-train/core'

/** A line that leads to a lane from the lane of an invocation that started it. */
export interface Join {
  /** Rows from this lane up to the other one; negative if it stands below. */
  readonly rows: number
  /** Milliseconds since the rollout was queued: when it was asked for, or when the answer was handed on. */
  readonly at: number
}

/** One invocation over time. */
export interface Lane {
  readonly invocation: InvocationTrace
  /** What its id adds to the name of the agent and to the id of its caller. */
  readonly detail: string
  /** Milliseconds since the rollout was queued; `null` if it never worked. */
  readonly at: number | null
  readonly ms: number
  readonly joins: readonly Join[]
}

/** The lanes of invocations; with `agent`, those of this one and of their callers. `start` is when the rollout was queued. */
export function lanesOf(invocations: readonly InvocationTrace[], start: number, agent: string | null = null): Lane[] {
  const byId = new Map(invocations.map((invocation) => [invocation.id, invocation]))
  /** Those above an invocation, the nearest first. */
  const callersOf = (place: number): InvocationTrace[] => {
    let { depth } = invocations[place]!
    return invocations
      .slice(0, place)
      .reverse()
      .filter((each) => {
        const isAbove = each.depth < depth
        if (isAbove) depth = each.depth
        return isAbove
      })
  }
  const callers = new Map(invocations.map((invocation, place) => [invocation, callersOf(place)]))
  const kept = new Set(invocations.flatMap((each) => (agent === null || each.agent === agent ? [each, ...callers.get(each)!] : [])))
  const shown = invocations.filter((each) => kept.has(each))
  const rowOf = new Map(shown.map(({ id }, row) => [id, row]))
  return shown.map((invocation, row): Lane => {
    const { id, agent: name, startedBy, timing } = invocation
    const rest = id.startsWith(name) ? id.slice(name.length) : `:${id}`
    const caller = callers.get(invocation)![0]
    const detail = caller && rest.startsWith(`:${caller.id}`) ? rest.slice(caller.id.length + 1) : rest
    const joins = startedBy.flatMap(({ trajectory, toolCall }): Join[] => {
      const from = rowOf.get(trajectory)
      const at = toolCall === null ? byId.get(trajectory)?.timing?.endedAt : timing?.startedAt
      return from === undefined || at === undefined || from === row ? [] : [{ rows: row - from, at: at - start }]
    })
    const time = timing ? { at: timing.startedAt - start, ms: timing.endedAt - timing.startedAt } : { at: null, ms: 0 }
    return { invocation, detail, ...time, joins }
  })
}

/** The invocation whose tokens are shown if none is chosen. */
export const mainInvocation = (invocations: readonly InvocationTrace[]): InvocationTrace | undefined =>
  invocations.find(({ trainable }) => trainable) ?? invocations[0]

/** Most of these that are under way at the same time. */
export function mostAtOnce(spans: readonly { readonly at: number; readonly ms: number }[]): number {
  // Of two changes at one time, the end comes first.
  const changes = spans.flatMap(({ at, ms }) => [[at, 1] as const, [at + ms, -1] as const]).sort((a, b) => a[0] - b[0] || a[1] - b[1])
  let [most, open] = [0, 0]
  for (const [, change] of changes) {
    open += change
    most = Math.max(most, open)
  }
  return most
}
