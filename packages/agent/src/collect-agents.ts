import { TrainError } from '@aworld-train/core'
import type { Participant } from './participant.ts'

/** Returns the agents of `participants` and those that they may call, each once. Throws CONFIG_INVALID if two of them were given one name. */
export function collectAgents<Agent extends Participant>(participants: readonly Participant[]): readonly Agent[] {
  const collected = new Set<Participant>()
  const taken = new Set<string>()
  const add = (participant: Participant): void => {
    if (collected.has(participant)) return
    collected.add(participant)
    const { kind, name, named, agents, registered } = participant
    if (kind === 'agent' && named && taken.has(name))
      throw new TrainError('CONFIG_INVALID', `Two agents are named "${name}"; give each its own name.`)
    if (kind === 'agent' && named) taken.add(name)
    for (const other of [...agents, ...registered]) if (typeof other !== 'string') add(other)
  }
  for (const participant of participants) add(participant)
  return [...collected].filter(({ kind }) => kind === 'agent') as readonly Participant[] as readonly Agent[]
}
