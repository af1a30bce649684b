import type { AgentAnswer, Invocation, Message, RolloutContext, Usage } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { AgentGraph } from './agent-graph.ts'
import type { ModelTransport } from './model-client.ts'

/** State that the agents of one run of a program share. */
export interface ProgramRun {
  readonly graph: AgentGraph
  readonly context: RolloutContext
  readonly transport: ModelTransport
  readonly policyBaseUrls: readonly string[]
  /** Model calls and tokens of all agents so far. */
  readonly spent: { modelCalls: number; usage: Usage }
  /** Conversations of the members so far. A failure keeps them. */
  readonly transcript: { finished: readonly Message[]; current: readonly Message[] }
}

/** Runs an agent as `invocation`, which has begun. */
export type RunAgent = (
  agent: Agent,
  input: readonly Message[],
  run: ProgramRun,
  options: { readonly invocation: Invocation; readonly signal: AbortSignal },
) => Promise<AgentAnswer>
