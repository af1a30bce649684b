import type { AgentAnswer, Invocation, InvocationOptions, Message, RolloutContext, Usage } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { AgentGraph } from './agent-graph.ts'
import type { ModelTransport } from './model-client.ts'
import type { Graph, SwarmShape } from './swarm/swarm-types.ts'

/** The conversation of one invocation, as far as it has come. */
export interface Transcript {
  messages: readonly Message[]
  /** Number of answers on the longest way to it. */
  readonly depth: number
  /** Number of its node in the graph. */
  readonly node: number
}

/** State that the agents of one run of a program share. */
export interface ProgramRun {
  readonly graph: AgentGraph
  readonly context: RolloutContext
  readonly transport: ModelTransport
  readonly policyBaseUrls: readonly string[]
  readonly runGraph: RunGraph
  /** Model calls and tokens of all agents so far, and whether one of them met a limit that it shares with others. */
  readonly spent: { modelCalls: number; usage: Usage; metSharedLimit: boolean }
  /** Conversations of the graph that runs. A failure keeps them. */
  readonly transcripts: Transcript[]
  /** Starts of agents of each swarm that has a limit. */
  readonly steps: Map<SwarmShape, { count: number }>
  /** The agents whose calls led here, and the workflows that they called. */
  readonly callers: readonly (Agent | SwarmShape)[]
}

export type StartedBy = NonNullable<InvocationOptions['startedBy']>

/** What starts a graph: the program itself, or a call of a tool. */
export interface GraphStart {
  readonly input: readonly Message[]
  /** Place of the first start of each agent; empty for the program. */
  readonly place: string
  readonly startedBy: StartedBy
}

export type RunGraph = (graph: Graph, start: GraphStart, run: ProgramRun, signal: AbortSignal) => Promise<AgentAnswer>

/** Runs an agent as `invocation`, which has begun. */
export type RunAgent = (
  agent: Agent,
  input: readonly Message[],
  run: ProgramRun,
  options: { readonly invocation: Invocation; readonly transcript: Transcript; readonly signal: AbortSignal },
) => Promise<AgentAnswer>

/** Conversations in an order that does not depend on time. */
export function messagesOf({ transcripts }: ProgramRun): readonly Message[] {
  return transcripts.toSorted((a, b) => a.depth - b.depth || a.node - b.node).flatMap(({ messages }) => messages)
}

/** Counts a start of an agent of `swarm`; false if that is beyond its `maxSteps`. */
export function countStep({ steps, spent }: ProgramRun, swarm: SwarmShape): boolean {
  const step = steps.get(swarm) ?? { count: 0 }
  steps.set(swarm, step)
  step.count += 1
  if (step.count > swarm.maxSteps) spent.metSharedLimit = true
  return step.count <= swarm.maxSteps
}
