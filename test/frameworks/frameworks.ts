import { type AgentFunction, toAgentProgram } from '@aworld-train/agent'
import type { AgentProgram } from '@aworld-train/core'

/** What a client does to the history that it sends back, as kinds of the token report; measured with the pinned versions. */
export interface Habits {
  readonly tolerated: readonly string[]
  /** Beside those, where it streams. */
  readonly whenStreaming?: readonly string[]
  /** A call that failed once is made again. */
  readonly retries: boolean
}

/** An agent of examples/any-agent, with whole answers or streamed ones. */
export interface Framework {
  readonly name: string
  readonly habits: Habits
  /** `python` runs the one that is written in Python. */
  load(options: { readonly stream: boolean; readonly python: string }): Promise<AgentProgram & { close(): Promise<void> }>
}

interface AgentModule {
  readonly agent: AgentFunction
  readonly streamingAgent: AgentFunction
}

const ofModule = (name: string, habits: Habits, load: () => Promise<AgentModule>): Framework => ({
  name,
  habits,
  async load({ stream }) {
    const module = await load()
    return toAgentProgram(stream ? module.streamingAgent : module.agent)
  },
})

export const frameworks: readonly Framework[] = [
  ofModule(
    'openai-chat',
    { tolerated: ['reasoning'], whenStreaming: ['empty-content'], retries: true },
    () => import('../../examples/any-agent/openai-chat.ts'),
  ),
  ofModule('openai-responses', { tolerated: [], retries: true }, () => import('../../examples/any-agent/openai-responses.ts')),
  ofModule('anthropic', { tolerated: [], retries: true }, () => import('../../examples/any-agent/anthropic.ts')),
  ofModule('ai-sdk', { tolerated: ['arguments'], retries: true }, () => import('../../examples/any-agent/ai-sdk.ts')),
  ofModule('openai-agents', { tolerated: [], retries: true }, () => import('../../examples/any-agent/openai-agents.ts')),
  ofModule('mastra', { tolerated: ['arguments'], retries: false }, () => import('../../examples/any-agent/mastra.ts')),
  ofModule(
    'langgraph',
    { tolerated: ['arguments', 'empty-content', 'reasoning'], retries: true },
    () => import('../../examples/any-agent/langgraph.ts'),
  ),
  {
    name: 'openai-python',
    habits: { tolerated: [], whenStreaming: ['empty-content'], retries: true },
    async load({ stream, python }) {
      const { createPythonAgent } = await import('../../examples/any-agent/openai-python.ts')
      return createPythonAgent({ python, stream })
    },
  },
]

const ofFunction = (
  name: string,
  habits: Habits,
  load: () => Promise<(...input: [...Parameters<AgentFunction>, stream: boolean]) => ReturnType<AgentFunction>>,
): Framework => ({
  name,
  habits,
  async load({ stream }) {
    const run = await load()
    return toAgentProgram((task, context) => run(task, context, stream))
  },
})

/** Frameworks over the dialect that is not their default. */
export const otherDialects: readonly Framework[] = [
  ofFunction(
    'openai-agents over Chat Completions',
    { tolerated: ['reasoning'], retries: true },
    async () => (await import('../../examples/any-agent/other-dialects.ts')).openaiAgentsChat,
  ),
  ofFunction(
    'langchain over Responses',
    { tolerated: [], retries: true },
    async () => (await import('../../examples/any-agent/other-dialects.ts')).langchainResponses,
  ),
]
