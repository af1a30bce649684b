import { type AgentFunction, toAgentProgram } from '@aworld-train/agent'
import type { AgentProgram } from '@aworld-train/core'

/** An agent of examples/any-agent, with whole answers or streamed ones. */
export interface Framework {
  readonly name: string
  /** `python` runs the one that is written in Python. */
  load(options: { readonly stream: boolean; readonly python: string }): Promise<AgentProgram & { close(): Promise<void> }>
}

interface AgentModule {
  readonly agent: AgentFunction
  readonly streamingAgent: AgentFunction
}

const ofModule = (name: string, load: () => Promise<AgentModule>): Framework => ({
  name,
  async load({ stream }) {
    const module = await load()
    return toAgentProgram(stream ? module.streamingAgent : module.agent)
  },
})

export const frameworks: readonly Framework[] = [
  ofModule('openai-chat', () => import('../../examples/any-agent/openai-chat.ts')),
  ofModule('openai-responses', () => import('../../examples/any-agent/openai-responses.ts')),
  ofModule('anthropic', () => import('../../examples/any-agent/anthropic.ts')),
  ofModule('ai-sdk', () => import('../../examples/any-agent/ai-sdk.ts')),
  ofModule('openai-agents', () => import('../../examples/any-agent/openai-agents.ts')),
  ofModule('mastra', () => import('../../examples/any-agent/mastra.ts')),
  ofModule('langgraph', () => import('../../examples/any-agent/langgraph.ts')),
  {
    name: 'openai-python',
    async load({ stream, python }) {
      const { createPythonAgent } = await import('../../examples/any-agent/openai-python.ts')
      return createPythonAgent({ python, stream })
    },
  },
]
