import type { Agent } from '../agent.ts'
import { leadOf } from './calls.ts'
import { checkGraph } from './check-graph.ts'
import { Group, type SwarmPart } from './group.ts'
import type { EdgeCondition } from './layout.ts'
import { isLoop, placeLoops } from './loops.ts'
import { type Fragment, type Graph, GraphNode, isSwarm, type SwarmShape } from './swarm-types.ts'

/** The nodes of a swarm and of all swarms in it, while they are being connected. */
class GraphDraft {
  readonly nodes: GraphNode[] = []
  /** Where each part of the outermost swarm stands for the first time. */
  readonly fragments = new Map<SwarmPart, Fragment>()

  addSwarm(swarm: SwarmShape, outer: readonly SwarmShape[] = []): Fragment {
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
  #addWorkflow({ layout }: SwarmShape, swarms: readonly SwarmShape[]): readonly Fragment[] {
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

  #addSeries(parts: readonly SwarmPart[], swarms: readonly SwarmShape[]): readonly Fragment[] {
    const fragments = parts.map((part) => this.#addPart(part, swarms))
    for (const [index, fragment] of fragments.entries()) if (index > 0) connect(fragments[index - 1]!, fragment)
    return fragments
  }

  #addPart(part: SwarmPart, swarms: readonly SwarmShape[]): Fragment {
    const fragment = this.#toFragment(part, swarms)
    if (swarms.length === 1 && !this.fragments.has(part)) this.fragments.set(part, fragment)
    return fragment
  }

  #toFragment(part: SwarmPart, swarms: readonly SwarmShape[]): Fragment {
    if (!(part instanceof Group)) return isSwarm(part) ? this.addSwarm(part, swarms) : this.#addNode(part as Agent, swarms)
    if (part.order === 'serial') {
      const fragments = this.#addSeries(part.parts, swarms)
      return { firsts: fragments[0]!.firsts, lasts: fragments.at(-1)!.lasts }
    }
    const fragments = part.parts.map((each) => this.#addPart(each, swarms))
    return { firsts: fragments.flatMap(({ firsts }) => firsts), lasts: fragments.flatMap(({ lasts }) => lasts) }
  }

  #addNode(agent: Agent, swarms: readonly SwarmShape[]): Fragment {
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
export function toGraph(swarm: SwarmShape): Graph {
  const draft = new GraphDraft()
  draft.addSwarm(swarm)
  const graph = checkGraph(draft, swarm)
  placeLoops(graph.nodes)
  return graph
}

/** The graph of one agent alone. */
export function toSingleGraph(agent: Agent): Graph {
  const node = new GraphNode(agent, [])
  if (isLoop(agent)) placeLoops([node])
  return { nodes: [node], leaf: node }
}
