import { TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import { collectAgents } from './collect-agents.ts'
import { suggest } from './suggest.ts'

/** The agents of a program under names that are unique in it. */
export interface AgentGraph {
  /** The members and all agents that they may call, each once. */
  readonly agents: readonly Agent[]
  nameOf(agent: Agent): string
  /** The agents that `agent` may call as tools. */
  delegatesOf(agent: Agent): readonly Agent[]
}

/** Names the agents reachable from `members` and resolves references by name, `registered` included. Throws CONFIG_INVALID for clashes, unknown names and cycles. */
export function createAgentGraph(members: readonly Agent[], registered: readonly Agent[] = []): AgentGraph {
  const allAgents = collectAgents([...members, ...registered])
  const names = nameAgents(allAgents)
  const byName = new Map([...names].map(([agent, name]) => [name, agent]))
  const delegates = new Map(allAgents.map((agent) => [agent, resolveDelegates(agent, names.get(agent)!, byName)]))

  const reached = new Set<Agent>()
  const visit = (agent: Agent, path: readonly Agent[]): void => {
    if (path.includes(agent)) {
      const circle = [...path.slice(path.indexOf(agent)), agent].map((entry) => names.get(entry)).join(' → ')
      throw new TrainError('CONFIG_INVALID', `Agents call each other in a circle: ${circle}; remove one of the calls.`)
    }
    if (reached.has(agent) && path.length === 0) return
    reached.add(agent)
    for (const delegate of delegates.get(agent)!) visit(delegate, [...path, agent])
  }
  for (const agent of members) visit(agent, [])

  return {
    agents: [...reached],
    nameOf: (agent) => names.get(agent)!,
    delegatesOf: (agent) => delegates.get(agent)!,
  }
}

function nameAgents(agents: readonly Agent[]): Map<Agent, string> {
  const taken = new Set(agents.filter(({ named }) => named).map(({ name }) => name))
  const unnamed = agents.filter((agent) => !agent.named)
  let next = 1
  const freeName = (base: string): string => {
    if (unnamed.length === 1 && !taken.has(base)) return base
    while (taken.has(`${base}-${next}`)) next += 1
    taken.add(`${base}-${next}`)
    return `${base}-${next}`
  }
  return new Map(agents.map((agent) => [agent, agent.named ? agent.name : freeName(agent.name)]))
}

function resolveDelegates(agent: Agent, name: string, byName: ReadonlyMap<string, Agent>): readonly Agent[] {
  const resolved = agent.agents.map((delegate) => {
    if (typeof delegate !== 'string') return delegate
    const found = byName.get(delegate)
    if (found) return found
    const near = suggest(delegate, [...byName.keys()])
    const remedy = near ? `did you mean "${near}"?` : 'add it to the swarm, or pass the Agent itself.'
    throw new TrainError('CONFIG_INVALID', `Agent "${name}" may call "${delegate}", but no agent has this name; ${remedy}`)
  })
  return [...new Set(resolved)]
}
