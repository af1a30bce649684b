import { TrainError } from '@aworld-train/core'

/** Who works when: `workflow` follows its edges; in `handoff` and `team` an agent calls the others as tools. */
export type SwarmKind = 'workflow' | 'handoff' | 'team'

/** What can stand in a swarm, or be called by an agent as a tool: an `Agent` or a `Swarm`. */
export abstract class Participant {
  abstract readonly kind: 'agent' | SwarmKind
  abstract readonly name: string
  /** Whether its author named it. Any other name may be changed to make it unique. */
  abstract readonly named: boolean
  /** Its purpose, for agents that have it as a tool. */
  abstract readonly desc: string | undefined
  /** Those that an agent may call, or their names; those that work in a swarm. */
  abstract readonly agents: readonly (Participant | string)[]
  /** Those that its agents may call by name alone. */
  readonly registered: readonly Participant[] = []
}

/** Throws CONFIG_INVALID for a swarm without a name, by which an agent could call it. */
export function checkCallable({ kind, named }: Participant): void {
  if (kind === 'workflow' && !named)
    throw new TrainError(
      'CONFIG_INVALID',
      'Swarm: a workflow that an agent calls as a tool has no name; set "name" and "desc" among its options.',
    )
}
