import { TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import { collectAgents } from './collect-agents.ts'
import { nameAgents } from './name-agents.ts'
import { suggest } from './suggest.ts'
import { leadOf } from './swarm/calls.ts'
import { toSingleGraph } from './swarm/graph.ts'
import { type Graph, isSwarm, type SwarmShape, swarmsIn } from './swarm/swarm-types.ts'

/** An agent or swarm that an agent may call as a tool. */
export interface Delegate {
  readonly to: Agent | SwarmShape
  /** The handoff or team that gives it; absent where the agent itself declares it. */
  readonly swarm?: SwarmShape | undefined
}

/** The agents of a program under names that are unique in it. */
export interface AgentGraph {
  /** The members and all agents that they may call, each once. */
  readonly agents: readonly Agent[]
  /** What runs first. */
  readonly graph: Graph
  nameOf(participant: Agent | SwarmShape): string
  /** The agents and swarms that `agent` may call as tools, wherever in the program it stands. */
  delegatesOf(agent: Agent): readonly Delegate[]
}

/**
 * Names the agents reachable from a program and resolves references by name. Throws CONFIG_INVALID for clashes, unknown names, agents that
 * declare each other in a circle, and a loop that is called as a tool and goes back to another agent.
 */
export function createAgentGraph(source: Agent | SwarmShape): AgentGraph {
  const graph = isSwarm(source) ? source.graph : toSingleGraph(source)
  const allAgents = collectAgents<Agent>([source])
  const names = nameAgents(allAgents)
  const byName = new Map([...names].map(([agent, name]) => [name, agent]))
  const declared = new Map(allAgents.map((agent) => [agent, resolveDelegates(agent, names.get(agent)!, byName)]))
  for (const agent of allAgents) refuseCircle(agent, [], declared, names)

  const calls = swarmsOf(source, allAgents).flatMap((swarm) => [...swarm.calls])
  const delegates = new Map(
    allAgents.map((agent) => {
      const fromSwarms = calls.filter(([from]) => from === agent).flatMap(([, list]) => list)
      const own = declared.get(agent)!.map((to): Delegate => fromSwarms.find((call) => call.to === to) ?? { to })
      return [agent, [...own, ...fromSwarms].filter(({ to }, index, all) => all.findIndex((other) => other.to === to) === index)]
    }),
  )

  const reached = new Set<Agent>()
  const visit = (participant: Agent | SwarmShape): void => {
    if (isSwarm(participant)) visitGraph(participant.graph)
    else if (!reached.has(participant)) {
      reached.add(participant)
      for (const { to } of delegates.get(participant)!) {
        if (!isSwarm(to)) toSingleGraph(to)
        visit(to)
      }
    }
  }
  const visitGraph = ({ nodes }: Graph): void => {
    for (const { work } of nodes) if (!isSwarm(work)) visit(work)
  }
  visitGraph(graph)

  const nameOf = (participant: Agent | SwarmShape): string => {
    if (!isSwarm(participant)) return names.get(participant)!
    return participant.named || participant.kind === 'workflow' ? participant.name : nameOf(leadOf(participant))
  }
  return { agents: [...reached], graph, nameOf, delegatesOf: (agent) => delegates.get(agent)! }
}

/** All swarms of a program: those in `source`, in one another, and those that agents call. */
function swarmsOf(source: Agent | SwarmShape, agents: readonly Agent[]): readonly SwarmShape[] {
  const called = agents.flatMap((agent) => agent.agents.filter((delegate) => typeof delegate !== 'string')).filter(isSwarm)
  const swarms = new Set<SwarmShape>(isSwarm(source) ? [source, ...called] : called)
  for (const swarm of swarms) for (const inner of swarmsIn(swarm)) swarms.add(inner)
  return [...swarms]
}

function refuseCircle(
  participant: Agent | SwarmShape,
  path: readonly Agent[],
  declared: ReadonlyMap<Agent, readonly (Agent | SwarmShape)[]>,
  names: ReadonlyMap<Agent, string>,
): void {
  if (isSwarm(participant)) {
    for (const agent of participant.agents) refuseCircle(agent, path, declared, names)
    return
  }
  if (path.includes(participant)) {
    const circle = [...path.slice(path.indexOf(participant)), participant].map((entry) => names.get(entry)).join(' → ')
    throw new TrainError(
      'CONFIG_INVALID',
      `Agents call each other in a circle: ${circle}; remove one of the calls, or write them as edges of a HandoffSwarm, which bounds the depth.`,
    )
  }
  for (const delegate of declared.get(participant)!) refuseCircle(delegate, [...path, participant], declared, names)
}

function resolveDelegates(agent: Agent, name: string, byName: ReadonlyMap<string, Agent>): readonly (Agent | SwarmShape)[] {
  const resolved = agent.agents.map((delegate) => {
    if (typeof delegate !== 'string') return delegate as Agent | SwarmShape
    const found = byName.get(delegate)
    if (found) return found
    const near = suggest(delegate, [...byName.keys()])
    const remedy = near ? `did you mean "${near}"?` : 'add it to the swarm, or pass the Agent itself.'
    throw new TrainError('CONFIG_INVALID', `Agent "${name}" may call "${delegate}", but no agent has this name; ${remedy}`)
  })
  return [...new Set(resolved)]
}
