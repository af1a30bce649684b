import { TrainError } from '@aworld-train/core'
import { Agent } from './agent.ts'
import { collectAgents } from './collect-agents.ts'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'
import { Participant, type SwarmKind } from './participant.ts'
import { toCalls } from './swarm/calls.ts'
import { toGraph } from './swarm/graph.ts'
import { Group, isPart, type SwarmPart } from './swarm/group.ts'
import { describePart, readLayout, type SwarmEntry, type SwarmLayout } from './swarm/layout.ts'
import { type AggregateFunction, type Graph, isSwarm, type SwarmCall, type SwarmShape, swarmsIn } from './swarm/swarm-types.ts'

const kinds: readonly unknown[] = ['workflow', 'handoff', 'team'] satisfies SwarmKind[]

interface SwarmFields {
  /** Name and purpose as a tool of an agent. */
  readonly name?: string | undefined
  readonly desc?: string | undefined
  /** Default: `workflow`. */
  readonly buildType?: SwarmKind | undefined
  /** The agents, groups and edges, in place of arguments. */
  readonly topology?: readonly SwarmEntry[] | undefined
  /** The agents that get the input. Default: in a workflow those that no edge leads to, else the first one. */
  readonly rootAgent?: SwarmPart | readonly SwarmPart[] | undefined
  /** Most starts of agents in one run of the swarm; 0 or absent means no limit. */
  readonly maxSteps?: number | undefined
  /** Agents that members may call by name without being members. */
  readonly registerAgents?: readonly Agent[] | undefined
  /** Makes the answer of a workflow out of those of the agents that it ends with. */
  readonly aggregateFunc?: AggregateFunction | undefined
  /** How often one agent may stand in a chain of calls in a handoff or team. Default: 3. */
  readonly endlessThreshold?: number | undefined
  /** How often the first agent of a team must call the others before its answer counts. Default: 0. */
  readonly minCallNum?: number | undefined
}

export type SwarmOptions = EitherCase<SwarmFields>

const optionNames = [
  'name',
  'desc',
  'buildType',
  'topology',
  'rootAgent',
  'maxSteps',
  'registerAgents',
  'aggregateFunc',
  'endlessThreshold',
  'minCallNum',
] satisfies (keyof SwarmFields)[]
const withoutEffect = ['keepBuildType', 'eventDriven']
const refused = { builderCls: 'pass the agents, serial(…), parallel(…) or edges [from, to].' }

/** How often one agent may stand in a chain of calls. */
const defaultEndlessThreshold = 3

/** Agents that work together. Its arguments are agents, groups, swarms or edges; a form that cannot run throws CONFIG_INVALID. */
export class Swarm extends Participant implements SwarmShape {
  /** The kind of all swarms of this class; where it is absent `buildType` says it. */
  static readonly buildType: SwarmKind | undefined = undefined
  readonly name: string
  readonly named: boolean
  readonly desc: string | undefined
  readonly kind: SwarmKind
  readonly layout: SwarmLayout
  readonly roots: readonly SwarmPart[] | undefined
  /** Agents that its members, and those of its swarms, may call by name without being members. */
  override readonly registered: readonly Agent[]
  readonly maxSteps: number
  readonly endlessThreshold: number
  readonly minCallNum: number
  readonly aggregateFunc: AggregateFunction | undefined
  readonly ignored: readonly string[]
  readonly graph: Graph
  readonly calls: ReadonlyMap<Agent, readonly SwarmCall[]>
  readonly agents: readonly Agent[]

  constructor(...input: readonly (SwarmEntry | SwarmOptions)[]) {
    super()
    const last = input.at(-1)
    const hasOptions = input.length > 0 && typeof last === 'object' && last !== null && Object.getPrototypeOf(last) === Object.prototype
    const entries = hasOptions ? input.slice(0, -1) : input
    const { options, ignored } = readNamedOptions(hasOptions ? last : {}, { owner: 'Swarm', optionNames, withoutEffect, refused })
    this.ignored = ignored
    this.named = options['name'] !== undefined
    this.name = readText('name', options['name']) ?? 'swarm'
    this.desc = readText('desc', options['desc'])
    this.kind = readKind(options['buildType'], new.target.buildType)
    this.layout = readLayout(readEntries(entries, options['topology']))
    this.roots = readRoots(options['rootAgent'])
    this.maxSteps = readNumber('maxSteps', options['maxSteps'], 0) || Number.POSITIVE_INFINITY
    this.endlessThreshold = readNumber('endlessThreshold', options['endlessThreshold'], 1) ?? defaultEndlessThreshold
    this.minCallNum = readNumber('minCallNum', options['minCallNum'], 0) ?? 0
    this.aggregateFunc = readAggregate(options['aggregateFunc']) ?? this.defaultAggregate
    const registered = [...readRegistered(options['registerAgents']), ...swarmsIn(this).flatMap((swarm) => swarm.registered)]
    this.registered = [...new Set(registered)]
    checkOptions(this)
    this.calls = toCalls(this)
    this.graph = toGraph(this)
    this.agents = agentsOf(this)
    collectAgents([this])
  }

  get aggregates(): 'ends' | 'all' {
    return 'ends'
  }

  protected get defaultAggregate(): AggregateFunction | undefined {
    return undefined
  }
}

const invalid = (message: string) => new TrainError('CONFIG_INVALID', `Swarm: ${message}`)

function readText(option: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && value.trim() !== '' && value.length <= 2000)) return value?.trim()
  throw invalid(`"${option}" must be a text, and is ${describeValue(value)}.`)
}

function readKind(value: unknown, ofClass: SwarmKind | undefined): SwarmKind {
  if (value === 'hybrid') {
    throw invalid(
      'buildType "hybrid" is not supported; use "handoff" with an edge [lead, member] for each member, and [member, member] where two talk to each other.',
    )
  }
  if (value !== undefined && !kinds.includes(value)) throw invalid(`buildType is ${describeValue(value)}; use ${kinds.join(', ')}.`)
  if (value !== undefined && ofClass !== undefined && value !== ofClass)
    throw invalid(`buildType "${value}" contradicts the class, which is a ${ofClass}; leave it out, or use new Swarm(…).`)
  return (value as SwarmKind | undefined) ?? ofClass ?? 'workflow'
}

function readEntries(entries: readonly unknown[], topology: unknown): readonly unknown[] {
  if (topology === undefined) return entries
  if (!Array.isArray(topology)) throw invalid(`"topology" must be an array of agents, groups or edges, and is ${describeValue(topology)}.`)
  if (entries.length > 0) throw invalid('agents are given as arguments and in "topology"; keep one of them.')
  return topology
}

function readRoots(value: unknown): readonly SwarmPart[] | undefined {
  if (value === undefined) return undefined
  const roots = Array.isArray(value) ? value : [value]
  for (const root of roots)
    if (!isPart(root)) throw invalid(`"rootAgent" must be an agent or an array of agents, and has ${describeValue(root)}.`)
  return roots.length === 0 ? undefined : roots
}

function readNumber(option: string, value: unknown, least: number): number | undefined {
  if (value === undefined || (Number.isInteger(value) && Number(value) >= least)) return value as number | undefined
  throw invalid(`"${option}" must be a whole number of at least ${least}, and is ${describeValue(value)}.`)
}

function readAggregate(value: unknown): AggregateFunction | undefined {
  if (value === undefined || typeof value === 'function') return value as AggregateFunction | undefined
  throw invalid(`"aggregateFunc" must be a function (swarm, results) => text, and is ${describeValue(value)}.`)
}

function readRegistered(value: unknown): readonly Agent[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every((entry) => entry instanceof Agent)) return value
  throw invalid(`"registerAgents" must be an array of agents, and is ${describeValue(value)}.`)
}

function checkOptions({ kind, layout, aggregateFunc, minCallNum, maxSteps }: Swarm): void {
  const { parts, edges } = layout
  if (parts.length + edges.length === 0) throw invalid('it has no agents; pass agents, serial(…), parallel(…) or edges [from, to].')
  if (kind === 'workflow' && parts.length > 0 && edges.length > 0)
    throw invalid('a workflow is written as agents and groups, or as edges [from, to], not as both; write all of it in one of them.')
  const double = kind === 'workflow' && edges.flatMap(({ from, to }) => [from, to]).find((part) => isInGroup(part, edges))
  if (double)
    throw invalid(
      `"${describePart(double)}" is in a group of an edge and in an edge alone, and would run twice; write an edge for each agent of the group.`,
    )
  if (kind !== 'workflow' && aggregateFunc)
    throw invalid(`"aggregateFunc" belongs to a workflow, and this is a ${kind}; its first agent answers.`)
  if (kind !== 'team' && minCallNum > 0) throw invalid(`"minCallNum" belongs to a team, and this is a ${kind}.`)
  if (minCallNum >= maxSteps)
    throw invalid(`"minCallNum" is ${minCallNum}, and "maxSteps", which counts the first agent too, is ${maxSteps}; allow more steps.`)
}

/** Whether a part of an edge stands in a group of an edge too. */
function isInGroup(part: SwarmPart, edges: SwarmLayout['edges']): boolean {
  const holds = (other: SwarmPart): boolean => other instanceof Group && other.parts.some((each) => each === part || holds(each))
  return edges.some(({ from, to }) => holds(from) || holds(to))
}

function agentsOf(swarm: Swarm): readonly Agent[] {
  const { graph, calls } = swarm
  const agents = new Set<Agent>(graph.nodes.flatMap(({ work }) => (isSwarm(work) ? [] : [work])))
  for (const [from, list] of calls) {
    agents.add(from)
    for (const { to } of list) for (const agent of isSwarm(to) ? to.agents : [to]) agents.add(agent)
  }
  for (const inner of swarmsIn(swarm)) for (const agent of inner.agents) agents.add(agent)
  return [...agents]
}
