import { TrainError } from '@aworld-train/core'
import { Agent } from './agent.ts'
import { collectAgents } from './collect-agents.ts'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'

export type SwarmOptions = EitherCase<{
  /** Only `workflow`, the sequential form, is supported. */
  readonly buildType?: string | undefined
  /** Agents that members may call by name without being members. */
  readonly registerAgents?: readonly Agent[] | undefined
}>

const optionNames = ['buildType', 'registerAgents']
const withoutEffect = ['maxSteps', 'keepBuildType', 'eventDriven']
const refused = {
  topology: 'pass the agents one after another.',
  rootAgent: 'pass the agents one after another.',
  builderCls: 'pass the agents one after another.',
}

const supported = 'supported is the sequential form, new Swarm(first, second, …): every agent gets the answer of the one before it'

/** Agents that run one after another. Each gets the previous one's answer. Other forms throw CONFIG_INVALID naming the supported one. */
export class Swarm {
  readonly agents: readonly Agent[]
  /** Agents that are not members and may be called by name. */
  readonly registered: readonly Agent[]
  readonly ignored: readonly string[]

  constructor(...input: readonly (Agent | SwarmOptions)[]) {
    const last = input.at(-1)
    const hasOptions = input.length > 0 && typeof last === 'object' && last !== null && Object.getPrototypeOf(last) === Object.prototype
    const members = hasOptions ? input.slice(0, -1) : input
    const { options, ignored } = readNamedOptions(hasOptions ? last : {}, { owner: 'Swarm', optionNames, withoutEffect, refused })
    const buildType = options['buildType'] ?? 'workflow'
    if (buildType !== 'workflow') {
      throw new TrainError('CONFIG_INVALID', `Swarm: buildType ${describeValue(buildType)} is not yet supported; ${supported}.`)
    }
    for (const member of members) checkMember(member)
    if (members.length === 0) throw new TrainError('CONFIG_INVALID', `Swarm has no agents; ${supported}.`)
    this.agents = members as readonly Agent[]
    this.registered = readRegistered(options['registerAgents'])
    collectAgents([...this.agents, ...this.registered])
    this.ignored = ignored
  }
}

function checkMember(member: unknown): void {
  if (member instanceof Agent) return
  if (Array.isArray(member)) {
    throw new TrainError('CONFIG_INVALID', `Swarm: groups, pairs and edges in arrays are not yet supported; ${supported}.`)
  }
  if (member instanceof Swarm) throw new TrainError('CONFIG_INVALID', `Swarm: a swarm inside a swarm is not yet supported; ${supported}.`)
  throw new TrainError('CONFIG_INVALID', `Swarm: expected an Agent, got ${describeValue(member)}; ${supported}.`)
}

function readRegistered(value: unknown): readonly Agent[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every((entry) => entry instanceof Agent)) return value
  throw new TrainError('CONFIG_INVALID', `Swarm: "registerAgents" must be an array of agents, and is ${describeValue(value)}.`)
}
