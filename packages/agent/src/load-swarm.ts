import { isRecord, TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import { describeValue, readNamedOptions } from './named-options.ts'
import { ParallelizableAgent, SerialableAgent } from './swarm/aworld-shapes.ts'
import type { SwarmEntry } from './swarm/layout.ts'
import { Swarm, type SwarmOptions } from './swarm.ts'

type Part = Agent | Swarm

const edgeNames = Object.keys({ from: 0, to: 0 })
const sectionNames = ['name', 'desc', 'type', 'order', 'agents', 'edges', 'rootAgent', 'maxSteps', 'endlessThreshold', 'minCallNum']
/** The options of an entry, by its node type. */
const entryNames: Readonly<Record<string, readonly string[]>> = {
  agent: ['id', 'nodeType', 'next'],
  parallel: ['id', 'nodeType', 'next', 'agents'],
  serial: ['id', 'nodeType', 'next', 'agents'],
  swarm: ['id', 'nodeType', 'next', 'agents', 'swarmType', 'edges', 'rootAgent', 'maxSteps', 'endlessThreshold', 'minCallNum'],
}
const refused = { root: 'name the first agent in "root_agent".', members: 'list the members in "agents".' }

const invalid = (owner: string, message: string) => new TrainError('CONFIG_INVALID', `${owner}: ${message}`)

const toSnakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Creates a swarm; an error names the file. */
export function createSwarm(entries: readonly SwarmEntry[], options: SwarmOptions, origin: string): Swarm {
  return named(origin, () => new Swarm(...entries, options))
}

function named<Value>(owner: string, create: () => Value): Value {
  try {
    return create()
  } catch (error) {
    throw new TrainError('CONFIG_INVALID', `${owner}: ${(error as Error).message}`, { cause: error })
  }
}

/** Reads AWorld's section `swarm`. Agents of the file that are no members may be called by name. */
export function toSwarm(section: unknown, agents: Readonly<Record<string, Agent>>, origin: string): Swarm {
  const owner = `${origin}, swarm`
  if (!isRecord(section)) throw invalid(origin, `"swarm" must be a mapping, and is ${describeValue(section)}.`)
  const { options } = readNamedOptions(section, { owner, optionNames: sectionNames, withoutEffect: ['eventDriven'], refused })
  const { type, order, agents: entries, ...rest } = options
  if (order !== undefined && entries !== undefined) throw invalid(owner, '"order" and "agents" are both given; keep one of them.')
  return new SwarmReader(agents, owner).read({ ...rest, type, agents: entries ?? order }, order === undefined ? 'agents' : 'order')
}

/** Reads a swarm and those in it. An id means one part in all of them. */
class SwarmReader {
  readonly #agents: Readonly<Record<string, Agent>>
  readonly #owner: string
  readonly #groups: Map<string, Part>

  constructor(agents: Readonly<Record<string, Agent>>, owner: string, groups = new Map<string, Part>()) {
    this.#agents = agents
    this.#owner = owner
    this.#groups = groups
  }

  read(fields: Record<string, unknown>, listName: 'order' | 'agents'): Swarm {
    const { type, agents: members, edges: edgeList = [], rootAgent, ...options } = fields
    const written = this.#readEdges(edgeList)
    const list = members ?? this.#membersOf(written)
    if (!Array.isArray(list)) throw invalid(this.#owner, `"${listName}" must be an array of agents, and is ${describeValue(list)}.`)
    if (members !== undefined && list.length === 0) throw invalid(this.#owner, `"${listName}" is empty; name at least one agent.`)
    const entries = list.map((entry: unknown) => this.#readEntry(entry))
    for (const { id, nodeType, ...fieldsOfEntry } of entries) this.#define(id, nodeType, fieldsOfEntry)
    const inGroups = new Set(
      entries.flatMap(({ nodeType, agents }) => (nodeType === 'parallel' || nodeType === 'serial' ? (agents as string[]) : [])),
    )
    const ids = entries.map(({ id }) => id).filter((id) => !inGroups.has(id))
    const explicit = new Set(written.map(([from]) => from))
    const edges = [
      ...written,
      ...entries.filter(({ id }) => !explicit.has(id)).flatMap(({ id, next }) => next.map((to) => [id, to] as const)),
    ]
    const connected = edges.map(([from, to]) => [this.#find(from, 'edges'), this.#find(to, 'edges')] as const)
    const isWorkflow = type === undefined || type === 'workflow'
    const lone = isWorkflow && edges.length > 0 && ids.find((id) => !edges.some((edge) => edge.includes(id)))
    if (lone)
      throw invalid(
        this.#owner,
        `"agents" lists "${lone}", which no edge names; add it to "edges" or to the "next" of another, or remove it.`,
      )
    const parts = isWorkflow && edges.length > 0 ? [] : ids.map((id) => this.#find(id, listName))
    const roots = rootAgent === undefined ? undefined : [rootAgent].flat().map((id) => this.#find(id, 'root_agent'))
    const swarmOptions = { ...options, buildType: type, rootAgent: roots, registerAgents: Object.values(this.#agents) } as SwarmOptions
    return createSwarm([...parts, ...connected], swarmOptions, this.#owner)
  }

  /** The agents that the edges name, in the order of the file; without edges all of them. */
  #membersOf(edges: readonly (readonly [string, string])[]): readonly string[] {
    const ids = Object.keys(this.#agents)
    return edges.length === 0 ? ids : ids.filter((id) => edges.some((edge) => edge.includes(id)))
  }

  #readEntry(entry: unknown): Record<string, unknown> & { id: string; nodeType: string; next: string[] } {
    if (typeof entry === 'string') return { id: entry, nodeType: 'agent', next: [] }
    if (!isRecord(entry)) throw invalid(this.#owner, `"agents" must hold names or mappings with "id", and holds ${describeValue(entry)}.`)
    const { id } = entry
    if (typeof id !== 'string' || id === '') throw invalid(this.#owner, `an entry of "agents" has the id ${describeValue(id)}; name it.`)
    const { options } = readNamedOptions(entry, { owner: `${this.#owner}, "${id}"`, optionNames: entryNames['swarm']! })
    const { nodeType = 'agent', next } = options
    if (typeof nodeType !== 'string' || !Object.hasOwn(entryNames, nodeType))
      throw invalid(this.#owner, `"node_type" of "${id}" is ${describeValue(nodeType)}; use agent, parallel, serial or swarm.`)
    const extra = Object.keys(options).find((name) => !entryNames[nodeType]!.includes(name))
    if (extra) {
      const types = Object.keys(entryNames).filter((type) => entryNames[type]!.includes(extra))
      throw invalid(
        this.#owner,
        `"${id}" has the node_type "${nodeType}", which has no "${toSnakeCase(extra)}"; set "node_type" to ${types.join(' or ')}, or remove it.`,
      )
    }
    return { ...options, id, nodeType, next: next === undefined ? [] : [next].flat().map((name) => this.#readId(name, `next" of "${id}`)) }
  }

  /** Creates the group or swarm of an entry; an agent exists already. */
  #define(id: string, nodeType: string, { swarmType, agents, next: _, ...options }: Record<string, unknown>): void {
    if (nodeType === 'agent') return
    if (Object.hasOwn(this.#agents, id) || this.#groups.has(id))
      throw invalid(this.#owner, `the ${nodeType} "${id}" has the id of another; give each its own.`)
    const owner = `${this.#owner}, "${id}"`
    if (nodeType === 'swarm') {
      if (agents === undefined && [options['edges'] ?? []].flat().length === 0)
        throw invalid(owner, '"agents" is missing; name at least one agent.')
      const inner = new SwarmReader(this.#agents, owner, this.#groups)
      this.#groups.set(id, inner.read({ ...options, name: id, type: swarmType, agents }, 'agents'))
      return
    }
    if (!Array.isArray(agents))
      throw invalid(this.#owner, `"agents" of "${id}" must be an array of names, and is ${describeValue(agents)}.`)
    if (agents.length === 0) throw invalid(this.#owner, `"agents" of "${id}" is empty; name at least one agent.`)
    const members = agents.map((name) => this.#find(name, `agents" of "${id}`))
    const Shape = nodeType === 'parallel' ? ParallelizableAgent : SerialableAgent
    this.#groups.set(
      id,
      named(owner, () => new Shape({ name: id, agents: members })),
    )
  }

  #readEdges(list: unknown): readonly (readonly [string, string])[] {
    if (!Array.isArray(list)) throw invalid(this.#owner, `"edges" must be an array of { from, to }, and is ${describeValue(list)}.`)
    return list.map((edge: unknown): readonly [string, string] => {
      if (Array.isArray(edge) && edge.length !== 2) throw invalid(this.#owner, `"edges" has an array of ${edge.length}; write [from, to].`)
      const ends = Array.isArray(edge) ? { from: edge[0], to: edge[1] } : edge
      const { from, to } = readNamedOptions(ends, { owner: `${this.#owner}, edges`, optionNames: edgeNames }).options
      return [this.#readId(from, 'edges'), this.#readId(to, 'edges')]
    })
  }

  #readId(value: unknown, key: string): string {
    if (typeof value === 'string') return value
    throw invalid(this.#owner, `"${key}" must name agents, and has ${describeValue(value)}.`)
  }

  #find(id: unknown, key: string): Part {
    const part = typeof id === 'string' && (this.#groups.get(id) ?? (Object.hasOwn(this.#agents, id) ? this.#agents[id] : undefined))
    if (part) return part
    const names = [...Object.keys(this.#agents), ...this.#groups.keys()].join(', ')
    throw invalid(this.#owner, `"${key}" names ${describeValue(id)}, which is none of the agents ${names}.`)
  }
}
