import type { Agent } from '../agent.ts'
import { isSwarm } from '../collect-agents.ts'
import type { Swarm } from '../swarm.ts'
import { leadOf } from './calls.ts'
import { checkGraph } from './check-graph.ts'
import { Group, type SwarmPart } from './group.ts'
import type { EdgeCondition } from './layout.ts'
import { isLoop, placeLoops } from './loops.ts'

/** What stands before a node. */
export interface GraphEdge {
  readonly from: GraphNode
  readonly condition: EdgeCondition | undefined
}

/** One place of a graph. It starts when every node before it has answered. */
export class GraphNode {
  /** The agent that is asked, or the swarm whose aggregate function makes one answer of those before it. */
  readonly work: Agent | Swarm
  /** The swarms that hold this node; each counts its starts. */
  readonly swarms: readonly Swarm[]
  readonly before: GraphEdge[] = []
  /** Number of this place among the `places` of its agent in the graph, from 1. */
  place = 1
  places = 1
  /** Loops that hold a node before this one, but not this one, which waits for their end. */
  after: readonly GraphNode[] = []

  constructor(work: Agent | Swarm, swarms: readonly Swarm[]) {
    this.work = work
    this.swarms = swarms
  }
}

/** What runs when a swarm runs: nodes, each behind those before it, and the one whose answer is the swarm's. */
export interface Graph {
  readonly nodes: readonly GraphNode[]
  readonly leaf: GraphNode
}

/** The nodes that a part begins and ends with. */
export interface Fragment {
  readonly firsts: readonly GraphNode[]
  readonly lasts: readonly GraphNode[]
}

/** The nodes of a swarm and of all swarms in it, while they are being connected. */
export class GraphDraft {
  readonly nodes: GraphNode[] = []
  /** Where each part of the outermost swarm stands for the first time. */
  readonly fragments = new Map<SwarmPart, Fragment>()

  addSwarm(swarm: Swarm, outer: readonly Swarm[] = []): Fragment {
    const swarms = [...outer, swarm]
    const members = swarm.kind === 'workflow' ? this.#addWorkflow(swarm, swarms) : [this.#addNode(leadOf(swarm), swarms)]
    const firsts = swarm.layout.edges.length > 0 ? firstsOf(members) : members[0]!.firsts
    const lasts = swarm.layout.edges.length > 0 && swarm.kind === 'workflow' ? this.#lastsOf(members) : members.at(-1)!.lasts
    if (!swarm.aggregateFunc) return { firsts, lasts }
    const join = new GraphNode(swarm, swarms)
    this.nodes.push(join)
    for (const from of swarm.aggregates === 'all' ? members.flatMap((member) => member.lasts) : lasts)
      join.before.push({ from, condition: undefined })
    return { firsts, lasts: [join] }
  }

  /** Adds the parts in their order, or those of the edges, each once. */
  #addWorkflow({ layout }: Swarm, swarms: readonly Swarm[]): readonly Fragment[] {
    if (layout.edges.length === 0) return this.#addSeries(layout.parts, swarms)
    const members = new Map<SwarmPart, Fragment>()
    const member = (part: SwarmPart): Fragment => {
      const fragment = members.get(part) ?? this.#addPart(part, swarms)
      members.set(part, fragment)
      return fragment
    }
    for (const { from, to, condition } of layout.edges) connect(member(from), member(to), condition)
    return [...members.values()]
  }

  #addSeries(parts: readonly SwarmPart[], swarms: readonly Swarm[]): readonly Fragment[] {
    const fragments = parts.map((part) => this.#addPart(part, swarms))
    for (const [index, fragment] of fragments.entries()) if (index > 0) connect(fragments[index - 1]!, fragment)
    return fragments
  }

  #addPart(part: SwarmPart, swarms: readonly Swarm[]): Fragment {
    const fragment = this.#toFragment(part, swarms)
    if (swarms.length === 1 && !this.fragments.has(part)) this.fragments.set(part, fragment)
    return fragment
  }

  #toFragment(part: SwarmPart, swarms: readonly Swarm[]): Fragment {
    if (!(part instanceof Group)) return isSwarm(part) ? this.addSwarm(part, swarms) : this.#addNode(part, swarms)
    if (part.order === 'serial') {
      const fragments = this.#addSeries(part.parts, swarms)
      return { firsts: fragments[0]!.firsts, lasts: fragments.at(-1)!.lasts }
    }
    const fragments = part.parts.map((each) => this.#addPart(each, swarms))
    return { firsts: fragments.flatMap(({ firsts }) => firsts), lasts: fragments.flatMap(({ lasts }) => lasts) }
  }

  #addNode(agent: Agent, swarms: readonly Swarm[]): Fragment {
    const node = new GraphNode(agent, swarms)
    this.nodes.push(node)
    return { firsts: [node], lasts: [node] }
  }

  #lastsOf(members: readonly Fragment[]): readonly GraphNode[] {
    return members
      .flatMap(({ lasts }) => lasts)
      .filter((node) => !this.nodes.some(({ before }) => before.some(({ from }) => from === node)))
  }
}

const firstsOf = (members: readonly Fragment[]) => members.flatMap(({ firsts }) => firsts).filter(({ before }) => before.length === 0)

function connect(left: Fragment, right: Fragment, condition?: EdgeCondition): void {
  for (const to of right.firsts) for (const from of left.lasts) to.before.push({ from, condition })
}

/** The graph of a swarm, checked. Throws CONFIG_INVALID for a graph that would never answer, or not once. */
export function toGraph(swarm: Swarm): Graph {
  const draft = new GraphDraft()
  draft.addSwarm(swarm)
  const graph = checkGraph(draft, swarm)
  numberPlaces(graph.nodes)
  placeLoops(graph.nodes)
  return graph
}

/** The graph of one agent alone. */
export function toSingleGraph(agent: Agent): Graph {
  const node = new GraphNode(agent, [])
  if (isLoop(agent)) placeLoops([node])
  return { nodes: [node], leaf: node }
}

/** Numbers the places of each agent. */
function numberPlaces(nodes: readonly GraphNode[]): void {
  for (const node of nodes) {
    const places = nodes.filter(({ work }) => work === node.work)
    node.place = places.indexOf(node) + 1
    node.places = places.length
  }
}
