import { TrainError } from '@aworld-train/core'
import type { Agent } from '../agent.ts'
import { checkCallable } from '../participant.ts'
import { Group, type SwarmPart } from './group.ts'
import { describePart } from './layout.ts'
import { isSwarm, type SwarmCall, type SwarmShape } from './swarm-types.ts'

/** The agent that a handoff or a team begins with: `rootAgent`, else the first. */
export function leadOf(swarm: SwarmShape): Agent {
  const { parts, edges } = swarm.layout
  const first = swarm.kind === 'handoff' ? (edges[0]?.from ?? parts[0]) : (parts[0] ?? edges[0]?.from)
  return callerOf(swarm, swarm.roots?.[0] ?? first!)
}

/** Who may call whom in a handoff or a team. Throws CONFIG_INVALID for what no agent can call, and for an agent that nobody reaches. */
export function toCalls(swarm: SwarmShape): ReadonlyMap<Agent, readonly SwarmCall[]> {
  const { kind, layout, roots } = swarm
  const calls = new Map<Agent, SwarmCall[]>()
  if (kind === 'workflow') return calls
  if (roots && roots.length > 1)
    throw invalid(`a ${kind} begins with one agent, and "rootAgent" names ${roots.map(describePart).join(', ')}; keep one of them.`)
  const lead = leadOf(swarm)
  const add = (from: Agent, to: Agent | SwarmShape): void => {
    const existing = calls.get(from) ?? []
    if (!existing.some((call) => call.to === to)) calls.set(from, [...existing, { to, swarm }])
  }
  const called = layout.edges.map((edge) => {
    if (edge.condition)
      throw invalid(`an edge of a ${kind} has a condition; there the model of "${describePart(edge.from)}" decides. Remove it.`)
    const from = callerOf(swarm, edge.from)
    const to = calledBy(swarm, edge.to)
    if (from === to) throw invalid(`"${from.name}" hands off to itself; remove this edge.`)
    add(from, to)
    return to
  })
  const members = [...layout.parts, ...(kind === 'team' ? layout.edges.map(({ from }) => from) : [])].map((part) => calledBy(swarm, part))
  if (kind === 'team') for (const member of members) if (member !== lead && !called.includes(member)) add(lead, member)
  checkReached(swarm, lead, [...members, ...called, ...calls.keys()], calls)
  return calls
}

function checkReached(
  { kind }: SwarmShape,
  lead: Agent,
  members: readonly (Agent | SwarmShape)[],
  calls: ReadonlyMap<Agent | SwarmShape, readonly SwarmCall[]>,
): void {
  const reached = new Set<Agent | SwarmShape>([lead])
  for (const member of reached) for (const { to } of calls.get(member) ?? []) reached.add(to)
  const lost = members.find((member) => !reached.has(member))
  if (lost)
    throw invalid(
      `nobody in this ${kind} reaches "${lost.name}" from "${lead.name}"; add an edge [from, to] that leads to it, or leave it out.`,
    )
}

function callerOf(swarm: SwarmShape, part: SwarmPart): Agent {
  const called = calledBy(swarm, part)
  if (!isSwarm(called)) return called
  throw invalid(`the workflow "${called.name}" stands where a ${swarm.kind} needs an agent that calls others; put an Agent there.`)
}

/** The agent or workflow that is called where `part` is; a handoff or team is called by its first agent. */
function calledBy(swarm: SwarmShape, part: SwarmPart): Agent | SwarmShape {
  if (part instanceof Group)
    throw invalid(`${describePart(part)} stands in a ${swarm.kind}, where the model decides who works when; groups belong to a workflow.`)
  if (!isSwarm(part)) return part as Agent
  if (part.kind !== 'workflow') return leadOf(part)
  checkCallable(part)
  return part
}

const invalid = (message: string) => new TrainError('CONFIG_INVALID', `Swarm: ${message}`)
