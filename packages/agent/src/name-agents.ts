import type { Participant } from './participant.ts'

/** Names that are unique among `agents`: those that were given, and numbered ones for all others. */
export function nameAgents<Agent extends Participant>(agents: readonly Agent[]): Map<Agent, string> {
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
