/** What can stand in a swarm, or be called by an agent as a tool: an `Agent` or a `Swarm`. */
export abstract class Participant {
  abstract readonly name: string
  /** Whether its author named it. Any other name may be changed to make it unique. */
  abstract readonly named: boolean
  /** Its purpose, for agents that have it as a tool. */
  abstract readonly desc: string | undefined
}
