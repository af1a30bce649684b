import { TrainError } from '@aworld-train/core'
import { describeValue } from '../named-options.ts'
import { Participant } from '../participant.ts'

/** What a workflow is made of. */
export type SwarmPart = Participant | Group

/** Parts of a workflow that run one after another or side by side. */
export class Group {
  readonly order: 'serial' | 'parallel'
  readonly parts: readonly SwarmPart[]

  constructor(order: Group['order'], parts: readonly SwarmPart[]) {
    for (const part of parts) {
      if (!isPart(part))
        throw new TrainError('CONFIG_INVALID', `${order}(): expected an Agent, a Swarm or another group, got ${describeValue(part)}.`)
    }
    if (parts.length === 0) throw new TrainError('CONFIG_INVALID', `${order}() is empty; pass the agents of the group.`)
    this.order = order
    this.parts = parts
  }
}

export const isPart = (value: unknown): value is SwarmPart => value instanceof Participant || value instanceof Group

/** Groups parts of a workflow that run one after another. Each gets the answer of the one before it. */
export const serial = (...parts: readonly SwarmPart[]): Group => new Group('serial', parts)

/** Groups parts of a workflow that run side by side on the same input. What follows waits for all of them. */
export const parallel = (...parts: readonly SwarmPart[]): Group => new Group('parallel', parts)
