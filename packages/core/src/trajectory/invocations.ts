import type { PolicyEndpoint } from '../contracts/agent-program.ts'
import type { InvocationRecord } from '../protocol/attempt.ts'
import type { InvocationStart, Trajectory } from '../protocol/episode.ts'
import type { Timing } from '../protocol/turn.ts'
import { overlap } from '../time/overlap.ts'

/** A place of an invocation, as a URL carries it. */
export const invocationPlace = /^[A-Za-z0-9._:-]{1,256}$/

/** The form of a place, for messages. */
export const placeForm = '1 to 256 letters, digits, ".", "_", ":" and "-"'

/** Most invocations of one attempt. */
export const maxInvocations = 1024

/** The place of the invocation that call `call` of turn `turn` asks for. The caller stands in it by the number of its agent in the program. */
export function placeOfCall(caller: { readonly agent: number; readonly place: string }, turn: number, call: number): string {
  return `${caller.agent}${caller.place && `:${caller.place}`}.${turn}.${call}`
}

/**
 * The id of an agent's invocation: the agent's name, for its first one (`place` is ''). Else the place follows, with agents by name:
 * `planner:2` is the second start of `planner`, and `reader:planner.0.1` was asked for by call 1 of turn 0 of `planner`.
 */
export function invocationId(agents: readonly string[], agent: string, place: string): string {
  return place === '' ? agent : `${agent}:${spellPlace(agents, place)}`
}

function spellPlace(agents: readonly string[], place: string): string {
  const [, number, callerPlace = '', call] = /^(\d+)(?::(.+))?\.(\d+\.\d+(?:-\d+)?)$/.exec(place) ?? []
  const caller = number === undefined ? undefined : agents[Number(number)]
  return caller === undefined ? place : `${invocationId(agents, caller, callerPlace)}.${call}`
}

/** The endpoint of an invocation: the place stands in the URL. Endpoints that are not a gateway's stay as they are. */
export function invocationEndpoint(endpoint: PolicyEndpoint, place: string): PolicyEndpoint {
  return place === '' ? endpoint : { ...endpoint, baseUrl: endpoint.baseUrl.replace(/(\/r\/[^/]+)\/v1$/, `$1/~${place}/v1`) }
}

/** Orders ids as text, and the numbers in them as numbers. */
export function compareIds(a: string, b: string): number {
  const [left, right] = [a, b].map((id) => id.split(/(\d+)/)) as [string[], string[]]
  for (const [i, part] of left.entries()) {
    const other = right[i]
    if (other === undefined) return 1
    if (part === other) continue
    // Numbers that are equal may be written with zeros before them.
    if (i % 2 === 1 && Number(part) !== Number(other)) return Number(part) - Number(other)
    return part < other ? -1 : 1
  }
  return left.length - right.length
}

/** Trajectories in the order of an episode: by the place of their agent in the program, then by id. */
export function orderTrajectories(trajectories: readonly Trajectory[], agents: readonly string[]): Trajectory[] {
  return trajectories.toSorted((a, b) => agents.indexOf(a.agent) - agents.indexOf(b.agent) || compareIds(a.id, b.id))
}

/**
 * The trajectories of an attempt, from the turns that the gateway recorded and what the agent's side says of its invocations. An invocation
 * that never called the gateway has a trajectory without turns.
 */
export function linkInvocations(recorded: readonly Trajectory[], invocations: readonly InvocationRecord[]): Trajectory[] {
  const records = new Map(invocations.map((invocation) => [invocation.id, invocation]))
  const recordedIds = new Set(recorded.map(({ id }) => id))
  const silent = invocations.flatMap(({ id, agent }): Trajectory[] => {
    const first = recorded.find((trajectory) => trajectory.agent === agent)
    return recordedIds.has(id) || !first ? [] : [{ ...first, id, turns: [] }]
  })
  const all = [...recorded, ...silent]
  const callers = new Map(
    all.flatMap(({ id, turns }) =>
      turns.flatMap(({ index, toolCalls }) => toolCalls.map((call) => [call.id, { trajectory: id, turn: index }])),
    ),
  )
  const lastTurn = (id: string) => all.find((trajectory) => trajectory.id === id)?.turns.at(-1)?.index ?? null
  const linked = all.map((trajectory) => {
    const { startedBy = [], timing = null } = records.get(trajectory.id) ?? {}
    const starts = startedBy.flatMap(({ trajectory: id, toolCall }): InvocationStart[] => {
      const caller = toolCall === null ? undefined : callers.get(toolCall)
      if (caller && (id === null || id === caller.trajectory)) return [{ ...caller, toolCall }]
      return id === null ? [] : [{ trajectory: id, turn: toolCall === null ? lastTurn(id) : null, toolCall }]
    })
    return { ...trajectory, startedBy: starts, timing: timing ?? spanOf(trajectory) }
  })
  return orderTrajectories(linked, [...new Set(recorded.map(({ agent }) => agent))])
}

function spanOf({ turns }: Trajectory): Trajectory['timing'] {
  if (turns.length === 0) return null
  return {
    startedAt: Math.min(...turns.map(({ timing }) => timing.startedAt)),
    endedAt: Math.max(...turns.map(({ timing }) => timing.endedAt)),
  }
}

/**
 * The invocations whose answers can be that of the program: no tool call asked for them, and they handed their answer on to nobody. There are
 * several where a program declares several agents and not who starts whom, and where a function makes one answer out of several.
 */
export function answering(trajectories: readonly Trajectory[]): Trajectory[] {
  const handedOn = new Set(
    trajectories.flatMap(({ startedBy }) => startedBy.flatMap(({ trajectory, toolCall }) => (toolCall === null ? [trajectory] : []))),
  )
  const worked = trajectories.filter(
    ({ id, turns, startedBy }) => turns.length > 0 && !handedOn.has(id) && startedBy.every(({ toolCall }) => toolCall === null),
  )
  return worked.length > 0 ? worked : trajectories.filter(({ turns }) => turns.length > 0)
}

/** Of the invocations whose answers can be that of the program the last one, in the order of the episode, that wrote it; else the last one. */
export function answeringTrajectory(trajectories: readonly Trajectory[], answer: string | null): Trajectory | undefined {
  const candidates = answering(trajectories)
  const text = answer?.trim()
  const writers = text ? candidates.filter(({ turns }) => turns.some(({ message }) => message.content?.includes(text))) : []
  return (writers.length > 0 ? writers : candidates).at(-1)
}

/**
 * Whether an invocation worked at the same time as another one that neither started it nor was started by it, or whether two calls of one
 * invocation were under way at once. One of the two must be among those that `isCut` names. What a program does not declare is told by its
 * turns.
 */
export function workedSideBySide(
  trajectories: readonly Trajectory[],
  invocations: readonly InvocationRecord[],
  isCut: (id: string) => boolean,
): boolean {
  const byId = new Map(trajectories.map((trajectory) => [trajectory.id, trajectory]))
  const declared = new Map(invocations.flatMap(({ id, timing }) => (timing === null ? [] : [[id, [timing]] as const])))
  const intervalsOf = ({ id, turns }: Trajectory): readonly Timing[] => declared.get(id) ?? turns.map(({ timing }) => timing)
  const callersOf = (id: string, found = new Set<string>()): Set<string> => {
    for (const { trajectory } of byId.get(id)?.startedBy ?? []) {
      if (found.has(trajectory)) continue
      found.add(trajectory)
      callersOf(trajectory, found)
    }
    return found
  }
  const areSideBySide = (a: Trajectory, b: Trajectory): boolean =>
    a !== b &&
    intervalsOf(a).some((one) => intervalsOf(b).some((other) => overlap(one, other))) &&
    !callersOf(a.id).has(b.id) &&
    !callersOf(b.id).has(a.id)
  return (
    trajectories.some((cut) => isCut(cut.id) && trajectories.some((other) => areSideBySide(cut, other))) ||
    trajectories.some(({ turns }) => {
      const inTime = turns.map(({ timing }) => timing).sort((a, b) => a.startedAt - b.startedAt)
      return inTime.some((timing, i) => i > 0 && overlap(inTime[i - 1]!, timing))
    })
  )
}
