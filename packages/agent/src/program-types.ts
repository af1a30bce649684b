import type { AgentDeclaration, AgentProgram, PolicyEndpoint, RolloutContext } from '@aworld-train/core'
import type { AgentTask, Message } from '@aworld-train/protocol'
import type { Agent } from './agent.ts'
import type { Swarm } from './swarm.ts'

/** What a plain function gets: the rollout's context, and its policy as any OpenAI client needs it. */
export interface AgentFunctionContext extends RolloutContext, PolicyEndpoint {}

/** `null`: no answer. */
export type AgentFunctionAnswer = string | { readonly answer: string | null; readonly messages?: readonly Message[] } | null

export type AgentFunction = (task: AgentTask, context: AgentFunctionContext) => AgentFunctionAnswer | Promise<AgentFunctionAnswer>

/** Everything that can be trained. */
export type AgentSource = Agent | Swarm | AgentFunction

export interface AgentProgramOptions {
  /** Addresses that stand for the policy in training: an agent whose `llmBaseUrl` is one of them is trainable. */
  readonly policyBaseUrls?: readonly string[] | undefined
  /** Tools of a plain function, which cannot declare them itself. */
  readonly functionTools?: Pick<AgentDeclaration, 'mcpConfig' | 'mcpServers' | 'hiddenTools'> | undefined
}

/** An agent program that holds connections; `close` ends them. */
export interface ClosableAgentProgram extends AgentProgram {
  close(): Promise<void>
}
