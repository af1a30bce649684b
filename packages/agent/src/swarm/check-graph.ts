import { TrainError } from '@aworld-train/core'
import type { Agent } from '../agent.ts'
import { collectAgents } from '../collect-agents.ts'
import { nameAgents } from '../name-agents.ts'
import type { SwarmPart } from './group.ts'
import { describePart } from './layout.ts'
import { answerName, type Fragment, type Graph, type GraphNode, isSwarm, type SwarmShape } from './swarm-types.ts'

interface Draft {
  readonly nodes: readonly GraphNode[]
  /** Where each part of the swarm stands for the first time. */
  readonly fragments: ReadonlyMap<SwarmPart, Fragment>
}

/**
 * Puts the nodes of a draft in order, each behind those before it, and numbers the places of each agent. Throws CONFIG_INVALID for a cycle,
 * several ends, two answers of one name that meet, and roots that are none.
 */
export function checkGraph({ nodes, fragments }: Draft, swarm: SwarmShape): Graph {
  const names = nameAgents(collectAgents<Agent>(nodes.map(({ work }) => work).filter((work) => !isSwarm(work))))
  const nameOf = ({ work }: GraphNode): string => (isSwarm(work) ? work.name : names.get(work)!)
  const list = (entries: readonly GraphNode[]) => entries.map((node) => `"${nameOf(node)}"`).join(', ')

  const ordered = inOrder(nodes, nameOf)
  numberPlaces(ordered)
  for (const { before } of nodes) {
    const answers = before.map(({ from }) => answerName(nameOf(from), from.place))
    const double = answers.find((name, index) => answers.indexOf(name) !== index)
    if (double !== undefined)
      throw invalid(`two answers that meet are called "${double}"; give each of the groups a "name" that nothing else has.`)
  }
  const leaves = ordered.filter((node) => !nodes.some(({ before }) => before.some(({ from }) => from === node)))
  if (leaves.length > 1) {
    throw invalid(
      `the workflow ends with several agents, ${list(leaves)}, and has one answer; let one agent follow them, or set "aggregateFunc".`,
    )
  }
  if (swarm.kind === 'workflow' && swarm.roots) {
    const roots = swarm.roots.flatMap((part) => {
      const fragment = fragments.get(part)
      if (!fragment) throw invalid(`"rootAgent" names "${describePart(part)}", which is not in the swarm; add it, or remove it there.`)
      return fragment.firsts
    })
    for (const root of roots) {
      if (root.before.length > 0) {
        const before = list(root.before.map(({ from }) => from))
        throw invalid(`the root "${nameOf(root)}" comes after ${before}; remove the edge, or take it out of "rootAgent".`)
      }
    }
    const lost = nodes.find((node) => node.before.length === 0 && !roots.includes(node))
    if (lost) throw invalid(`nobody reaches "${nameOf(lost)}"; add an edge [from, to] that leads to it, or name it in "rootAgent".`)
  }
  return { nodes: ordered, leaf: leaves[0]! }
}

/** Nodes, each behind those before it, otherwise as they were written. */
function inOrder(nodes: readonly GraphNode[], nameOf: (node: GraphNode) => string): readonly GraphNode[] {
  const ordered: GraphNode[] = []
  const rest = new Set(nodes)
  while (rest.size > 0) {
    const next = [...rest].find(({ before }) => before.every(({ from }) => !rest.has(from)))
    if (!next)
      throw invalid(`the workflow has a cycle: ${circleIn(rest).map(nameOf).join(' → ')}; remove one of its edges, or use a LoopableAgent.`)
    rest.delete(next)
    ordered.push(next)
  }
  return ordered
}

/** Numbers the places of each agent. */
function numberPlaces(nodes: readonly GraphNode[]): void {
  for (const node of nodes) {
    const places = nodes.filter(({ work }) => work === node.work)
    node.place = places.indexOf(node) + 1
    node.places = places.length
  }
}

/** A cycle among nodes that all have one of them before them, along its edges; it ends with the node that it begins with. */
function circleIn(nodes: ReadonlySet<GraphNode>): readonly GraphNode[] {
  const path: GraphNode[] = [...nodes].slice(0, 1)
  for (;;) {
    const { from } = path[0]!.before.find((edge) => nodes.has(edge.from))!
    const again = path.indexOf(from)
    path.unshift(from)
    if (again !== -1) return path.slice(0, again + 2)
  }
}

const invalid = (message: string) => new TrainError('CONFIG_INVALID', `Swarm: ${message}`)
