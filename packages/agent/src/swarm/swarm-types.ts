import type { Agent } from '../agent.ts'
import type { Participant, SwarmKind } from '../participant.ts'
import { Group, type SwarmPart } from './group.ts'
import type { EdgeCondition, SwarmLayout } from './layout.ts'

/** A swarm, as its graph, its calls and its aggregate function see it. */
export interface SwarmShape extends Participant {
  readonly kind: SwarmKind
  /** Its parts as they were written. */
  readonly layout: SwarmLayout
  readonly roots: readonly SwarmPart[] | undefined
  readonly maxSteps: number
  readonly endlessThreshold: number
  readonly minCallNum: number
  readonly aggregateFunc: AggregateFunction | undefined
  /** Which answers `aggregateFunc` gets: those that the workflow ends with, or those of every part. */
  readonly aggregates: 'ends' | 'all'
  /** What runs first: a workflow, or the agent that calls the others. */
  readonly graph: Graph
  /** Who may call whom. */
  readonly calls: ReadonlyMap<Agent, readonly SwarmCall[]>
  /** Its agents and those of its swarms, each once. */
  readonly agents: readonly Agent[]
  /** Agents that its members may call by name, and those of its swarms. */
  readonly registered: readonly Agent[]
}

/** Makes one answer out of several, from agent to answer. `names` has the agents in order, also those with numbers as names. */
export type AggregateFunction = (
  swarm: SwarmShape,
  results: Readonly<Record<string, string>>,
  names: readonly string[],
) => string | Promise<string>

/** An agent or swarm that another agent may call in a swarm. */
export interface SwarmCall {
  readonly to: Agent | SwarmShape
  readonly swarm: SwarmShape
}

/** What stands before a node. */
export interface GraphEdge {
  readonly from: GraphNode
  readonly condition: EdgeCondition | undefined
}

/** One place of a graph. It starts when every node before it has answered. */
export class GraphNode {
  /** The agent that is asked, or the swarm whose aggregate function makes one answer of those before it. */
  readonly work: Agent | SwarmShape
  /** The swarms that hold this node; each counts its starts. */
  readonly swarms: readonly SwarmShape[]
  readonly before: GraphEdge[] = []
  /** Number of this place among the `places` of its agent in the graph, from 1. */
  place = 1
  places = 1
  /** Loops that hold a node before this one, but not this one, which waits for their end. */
  after: readonly GraphNode[] = []

  constructor(work: Agent | SwarmShape, swarms: readonly SwarmShape[]) {
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

export const isSwarm = (participant: Participant): participant is SwarmShape => participant.kind !== 'agent'

/** Answers as the text of a JSON object, in their order, which an object with numbers as names would not keep. */
export const toObjectText = (answers: readonly (readonly [name: string, answer: string])[]): string =>
  `{${answers.map(([name, answer]) => `${JSON.stringify(name)}:${JSON.stringify(answer)}`).join(',')}}`

/** The swarms that stand in a swarm, not those in them. */
export function swarmsIn({ layout, roots = [] }: SwarmShape): readonly SwarmShape[] {
  const swarms = new Set<SwarmShape>()
  const visit = (part: SwarmPart): void => {
    if (part instanceof Group) part.parts.forEach(visit)
    else if (isSwarm(part)) swarms.add(part)
  }
  for (const part of [...layout.parts, ...layout.edges.flatMap(({ from, to }) => [from, to]), ...roots]) visit(part)
  return [...swarms]
}

/** The name of an answer among others: that of its agent or group, with the place behind it unless it is the first. */
export const answerName = (name: string, place: number): string => (place === 1 ? name : `${name}:${place}`)
