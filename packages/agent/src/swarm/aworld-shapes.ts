import { TrainError } from '@aworld-train/core'
import { Agent } from '../agent.ts'
import { describeValue, type EitherCase, readNamedOptions } from '../named-options.ts'
import type { SwarmKind } from '../participant.ts'
import { Swarm } from '../swarm.ts'
import { parallel, type SwarmPart } from './group.ts'
import { type AggregateFunction, toObjectText } from './swarm-types.ts'

/** The kinds of swarms under AWorld's names. */
export const GraphBuildType = { WORKFLOW: 'workflow', HANDOFF: 'handoff', TEAM: 'team' } as const

export class WorkflowSwarm extends Swarm {
  static override readonly buildType: SwarmKind = 'workflow'
}

/** A swarm whose first agent, or `rootAgent`, has the others as tools. */
export class TeamSwarm extends Swarm {
  static override readonly buildType: SwarmKind = 'team'
}

/** A swarm of edges `[from, to]`, where `from` has `to` as a tool. Cycles are allowed. */
export class HandoffSwarm extends Swarm {
  static override readonly buildType: SwarmKind = 'handoff'
}

export type GroupAgentOptions = EitherCase<{
  readonly name?: string | undefined
  readonly desc?: string | undefined
  readonly agents: readonly (Agent | Swarm)[]
  /** Makes one answer out of those of the agents. */
  readonly aggregateFunc?: AggregateFunction | undefined
}>

function readGroup(owner: string, input: unknown): { readonly agents: readonly SwarmPart[]; readonly options: Record<string, unknown> } {
  const optionNames = ['name', 'desc', 'agents', 'aggregateFunc']
  const { agents, ...options } = readNamedOptions(input, { owner, optionNames, withoutEffect: ['conf'] }).options
  if (Array.isArray(agents) && agents.length > 0 && agents.every((agent) => agent instanceof Agent || agent instanceof Swarm))
    return { agents, options }
  throw new TrainError(
    'CONFIG_INVALID',
    `${owner}: "agents" must be an array of at least one agent or swarm, and is ${describeValue(agents)}.`,
  )
}

/** Agents that run one after another. `aggregateFunc` gets the answers of all of them; without it the last one's counts. */
export class SerialableAgent extends Swarm {
  constructor(input: GroupAgentOptions) {
    const { agents, options } = readGroup('SerialableAgent', input)
    super(...agents, options)
  }

  override get aggregates(): 'all' {
    return 'all'
  }
}

/** Agents that run side by side on one input. Without `aggregateFunc` the answer is a JSON object from agent to answer. */
export class ParallelizableAgent extends Swarm {
  constructor(input: GroupAgentOptions) {
    const { agents, options } = readGroup('ParallelizableAgent', input)
    super(parallel(...agents), options)
  }

  protected override get defaultAggregate(): AggregateFunction {
    return (_, results, names) => toObjectText(names.map((name) => [name, results[name]!]))
  }
}
