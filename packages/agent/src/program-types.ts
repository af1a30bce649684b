import type { AgentDeclaration, AgentProgram, AgentTask, Message, PolicyEndpoint, RolloutContext } from '@aworld-train/core'
import type { Agent } from './agent.ts'
import type { Swarm } from './swarm.ts'

/** Argument of a plain function: the rollout's context, and its policy as any OpenAI client needs it. */
export interface AgentFunctionContext extends RolloutContext, PolicyEndpoint {}

/** The answer of a plain function; `null` for none. */
export type AgentFunctionAnswer = string | { readonly answer: string | null; readonly messages?: readonly Message[] } | null

export type AgentFunction = (task: AgentTask, context: AgentFunctionContext) => AgentFunctionAnswer | Promise<AgentFunctionAnswer>

/** Anything that can be trained. */
export type AgentSource = Agent | Swarm | AgentFunction

export interface AgentProgramOptions {
  /** Addresses of the policy in training. An agent whose `llmBaseUrl` is one of them is trainable. */
  readonly policyBaseUrls?: readonly string[] | undefined
  /** Tools of a plain function, which cannot declare them itself. */
  readonly functionTools?: Pick<AgentDeclaration, 'mcpConfig' | 'mcpServers' | 'hiddenTools'> | undefined
}

/** An agent program that holds connections; `close` ends them. */
export interface ClosableAgentProgram extends AgentProgram {
  close(): Promise<void>
}
