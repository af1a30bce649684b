import type { Agent } from './agent.ts'
import type { AgentGraph } from './agent-graph.ts'
import { upTo } from './swarm/loops.ts'
import { type Graph, isSwarm, type SwarmShape } from './swarm/swarm-types.ts'

/**
 * Pairs of agents that may work at once, by name: those of nodes that no path of a graph connects, those that one agent may ask for in one
 * turn, which may be the same agent twice, and an agent, whose other tools run meanwhile, with all that work for those it asks.
 */
export function sideBySide({ agents, graph, nameOf, delegatesOf }: AgentGraph): (readonly [string, string])[] {
  const pairs = new Map<string, readonly [string, string]>()
  const add = (one: ReadonlySet<Agent>, other: ReadonlySet<Agent>): void => {
    for (const a of one) {
      for (const b of other) {
        const pair = [nameOf(a), nameOf(b)].sort() as [string, string]
        pairs.set(JSON.stringify(pair), pair)
      }
    }
  }
  /** All agents that work while a participant does. */
  const teamOf = (participant: Agent | SwarmShape, team = new Set<Agent>()): ReadonlySet<Agent> => {
    for (const agent of isSwarm(participant) ? participant.agents : [participant]) {
      if (team.has(agent)) continue
      team.add(agent)
      for (const { to } of delegatesOf(agent)) teamOf(to, team)
    }
    return team
  }
  const addGraph = ({ nodes }: Graph): void => {
    const working = nodes.filter(({ work }) => !isSwarm(work)).map((node) => ({ node, before: upTo(node) }))
    for (const [index, { node, before }] of working.entries())
      for (const other of working.slice(index + 1))
        if (!other.before.has(node) && !before.has(other.node)) add(teamOf(node.work), teamOf(other.node.work))
  }
  addGraph(graph)
  for (const agent of agents) {
    const delegates = delegatesOf(agent).map(({ to }) => to)
    for (const delegate of delegates) {
      if (isSwarm(delegate)) addGraph(delegate.graph)
      add(new Set([agent]), teamOf(delegate))
      for (const other of delegates) add(teamOf(delegate), teamOf(other))
    }
  }
  return [...pairs.values()]
}
