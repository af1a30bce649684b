import { TrainError } from '@aworld-train/core'

/** The parts of an agent that place it among others. */
interface Member {
  readonly name: string
  /** Whether its author named it. Any other name may be changed to make it unique. */
  readonly named: boolean
  /** The agents that it may call, or their names. */
  readonly agents: readonly (Member | string)[]
}

/** Returns `members` and the agents that they may call, each once. Throws CONFIG_INVALID if two of them were given one name. */
export function collectAgents<Agent extends Member>(members: readonly Agent[]): readonly Agent[] {
  const collected = new Set<Agent>()
  const taken = new Set<string>()
  const add = (agent: Agent): void => {
    if (collected.has(agent)) return
    collected.add(agent)
    if (agent.named && taken.has(agent.name))
      throw new TrainError('CONFIG_INVALID', `Two agents are named "${agent.name}"; give each its own name.`)
    if (agent.named) taken.add(agent.name)
    for (const delegate of agent.agents) if (typeof delegate !== 'string') add(delegate as Agent)
  }
  for (const agent of members) add(agent)
  return [...collected]
}
