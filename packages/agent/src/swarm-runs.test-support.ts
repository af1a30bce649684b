import { Agent, type AgentOptions } from './agent.ts'
import type { TestRun } from './run-once.test-support.ts'
import type { ScriptedReply, SeenRequest } from './scripted-server.test-support.ts'
import { LoopableAgent, type LoopableAgentOptions } from './swarm/loopable-agent.ts'

/** An agent whose system prompt is its name. */
export const agent = (name: string, options: AgentOptions = {}) => new Agent({ name, systemPrompt: name, ...options })
export const loopable = (name: string, options: Omit<LoopableAgentOptions, 'name'>) =>
  new LoopableAgent({ name, systemPrompt: name, ...options })

/** The name of the agent that asks. */
export const who = ({ body }: SeenRequest) => String(body.messages[0]!['content'])
export const lastText = ({ body }: SeenRequest) => String(body.messages.at(-1)!['content'])

/** Answers with the agent's name around what it was asked. */
export const echo = (request: SeenRequest): ScriptedReply => ({ content: `${who(request)}(${lastText(request)})` })

export const call = (name: string, content: string, id = 'c'): ScriptedReply => ({
  toolCalls: [{ id, name, arguments: JSON.stringify({ content }) }],
})

/** What started each invocation, by its id. */
export function startsOf({ invocations }: TestRun): Record<string, (string | null)[]> {
  return Object.fromEntries(invocations.map(({ id, startedBy }) => [id, startedBy.map(({ trajectory }) => trajectory)]))
}
