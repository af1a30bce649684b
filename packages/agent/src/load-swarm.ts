import { isRecord, TrainError } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import { describeValue, readNamedOptions } from './named-options.ts'
import { ParallelizableAgent, SerialableAgent } from './swarm/aworld-shapes.ts'
import type { SwarmEntry } from './swarm/layout.ts'
import { Swarm, type SwarmOptions } from './swarm.ts'

type Part = Agent | Swarm

const sectionNames = ['name', 'desc', 'type', 'order', 'agents', 'edges', 'rootAgent', 'maxSteps', 'endlessThreshold', 'minCallNum']
const entryNames = ['id', 'nodeType', 'swarmType', 'agents', 'next', 'edges', 'rootAgent', 'maxSteps', 'endlessThreshold', 'minCallNum']
const refused = { root: 'name the first agent in "root_agent".', members: 'list the members in "agents".' }

const invalid = (owner: string, message: string) => new TrainError('CONFIG_INVALID', `${owner}: ${message}`)

const endsOf = ({ from, to }: Record<string, unknown>) => [from, to]

/** Creates a swarm; an error names the file. */
export function createSwarm(entries: readonly SwarmEntry[], options: SwarmOptions, origin: string): Swarm {
  try {
    return new Swarm(...entries, options)
  } catch (error) {
    throw new TrainError('CONFIG_INVALID', `${origin}: ${(error as Error).message}`, { cause: error })
  }
}

/** Reads AWorld's section `swarm`. Agents of the file that are no members may be called by name. */
export function toSwarm(section: unknown, agents: Readonly<Record<string, Agent>>, origin: string): Swarm {
  const owner = `${origin}, swarm`
  if (!isRecord(section)) throw invalid(origin, `"swarm" must be a mapping, and is ${describeValue(section)}.`)
  const { options } = readNamedOptions(section, { owner, optionNames: sectionNames, withoutEffect: ['eventDriven'], refused })
  const { type, order, agents: entries, ...rest } = options
  if (order !== undefined && entries !== undefined) throw invalid(owner, '"order" and "agents" are both given; keep one of them.')
  const listed = entries ?? order ?? Object.keys(agents)
  return new SwarmReader(agents, origin, owner).read({ ...rest, type, agents: listed }, entries === undefined ? 'order' : 'agents')
}

/** Reads a swarm and those in it. An id means one part in all of them. */
class SwarmReader {
  readonly #agents: Readonly<Record<string, Agent>>
  readonly #origin: string
  readonly #owner: string
  readonly #groups = new Map<string, Part>()

  constructor(agents: Readonly<Record<string, Agent>>, origin: string, owner: string) {
    this.#agents = agents
    this.#origin = origin
    this.#owner = owner
  }

  read(fields: Record<string, unknown>, listName: 'order' | 'agents'): Swarm {
    const { type, agents: list, edges: edgeList = [], rootAgent, ...options } = fields
    if (!Array.isArray(list) || list.length === 0)
      throw invalid(this.#owner, `"${listName}" must be an array of agents, and is ${describeValue(list)}.`)
    const entries = list.map((entry: unknown) => this.#readEntry(entry))
    for (const { id, nodeType = 'agent', ...fieldsOfEntry } of entries) this.#define(id, nodeType, fieldsOfEntry)
    const inGroups = new Set(
      entries.flatMap(({ nodeType, agents }) => (nodeType === 'parallel' || nodeType === 'serial' ? (agents as string[]) : [])),
    )
    const ids = entries.map(({ id }) => id).filter((id) => !inGroups.has(id))
    const edges = this.#readEdges(edgeList, entries)
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
    return createSwarm([...parts, ...connected], swarmOptions, this.#origin)
  }

  #readEntry(entry: unknown): Record<string, unknown> & { id: string; next: string[] } {
    if (typeof entry === 'string') return { id: entry, next: [] }
    if (!isRecord(entry)) throw invalid(this.#owner, `"agents" must hold names or mappings with "id", and holds ${describeValue(entry)}.`)
    const { options } = readNamedOptions(entry, { owner: `${this.#owner}, agents`, optionNames: entryNames })
    const { id, next } = options
    if (typeof id !== 'string' || id === '') throw invalid(this.#owner, `an entry of "agents" has the id ${describeValue(id)}; name it.`)
    return { ...options, id, next: next === undefined ? [] : [next].flat().map((name) => this.#readId(name, `next" of "${id}`)) }
  }

  /** Creates the group or swarm of an entry; an agent exists already. */
  #define(id: string, nodeType: unknown, { swarmType, agents, next: _, ...options }: Record<string, unknown>): void {
    if (nodeType === 'agent') return
    if (nodeType !== 'parallel' && nodeType !== 'serial' && nodeType !== 'swarm')
      throw invalid(this.#owner, `"node_type" of "${id}" is ${describeValue(nodeType)}; use agent, parallel, serial or swarm.`)
    if (Object.hasOwn(this.#agents, id) || this.#groups.has(id))
      throw invalid(this.#owner, `the ${nodeType} "${id}" has the id of another; give each its own.`)
    if (nodeType === 'swarm') {
      this.#groups.set(id, this.read({ ...options, name: id, type: swarmType, agents }, 'agents'))
      return
    }
    if (!Array.isArray(agents))
      throw invalid(this.#owner, `"agents" of "${id}" must be an array of names, and is ${describeValue(agents)}.`)
    const members = agents.map((name) => this.#find(name, `agents" of "${id}`))
    const Shape = nodeType === 'parallel' ? ParallelizableAgent : SerialableAgent
    this.#groups.set(id, new Shape({ name: id, agents: members }))
  }

  /** Reads `edges`. Where they say nothing of an agent, its `next` counts. */
  #readEdges(list: unknown, entries: readonly { id: string; next: string[] }[]): readonly (readonly [string, string])[] {
    if (!Array.isArray(list)) throw invalid(this.#owner, `"edges" must be an array of { from, to }, and is ${describeValue(list)}.`)
    const edges = list.map((edge: unknown): readonly [string, string] => {
      const [from, to, ...more] = Array.isArray(edge) ? edge : isRecord(edge) ? endsOf(edge) : []
      if (more.length > 0) throw invalid(this.#owner, `"edges" has an array of ${more.length + 2}; write [from, to].`)
      return [this.#readId(from, 'edges'), this.#readId(to, 'edges')]
    })
    const explicit = new Set(edges.map(([from]) => from))
    return [...edges, ...entries.filter(({ id }) => !explicit.has(id)).flatMap(({ id, next }) => next.map((to) => [id, to] as const))]
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
