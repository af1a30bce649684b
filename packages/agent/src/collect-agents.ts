import { TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { Participant } from './participant.ts'
import type { Swarm } from './swarm.ts'

export const isSwarm = (participant: Participant): participant is Swarm => 'layout' in participant

/** Returns the agents of `participants` and those that they may call, each once. Throws CONFIG_INVALID if two of them were given one name. */
export function collectAgents(participants: readonly Participant[]): readonly Agent[] {
  const collected = new Set<Agent>()
  const taken = new Set<string>()
  const add = (participant: Participant): void => {
    if (isSwarm(participant)) {
      for (const agent of [...participant.agents, ...participant.registered]) add(agent)
      return
    }
    const agent = participant as Agent
    if (collected.has(agent)) return
    collected.add(agent)
    if (agent.named && taken.has(agent.name))
      throw new TrainError('CONFIG_INVALID', `Two agents are named "${agent.name}"; give each its own name.`)
    if (agent.named) taken.add(agent.name)
    for (const delegate of agent.agents) if (typeof delegate !== 'string') add(delegate)
  }
  for (const participant of participants) add(participant)
  return [...collected]
}
