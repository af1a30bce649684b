import { HarnessAgent, type HarnessAgentSettings } from '@ai-sdk/harness/agent'
import { createPi } from '@ai-sdk/harness-pi'
import { createJustBashSandbox } from '@ai-sdk/sandbox-just-bash'
import { tool } from 'ai'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const tools = {
  lookup: tool({
    description: lookupDescription,
    inputSchema: z.object({ name: z.string() }),
    execute: async ({ name }) => lookup(name),
  }),
}

type ToolSet = NonNullable<HarnessAgentSettings['tools']>

/** Pi by the AI SDK's harness, over Chat Completions: it runs in this process, and its shell is a simulated one. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const policy = {
    baseUrl,
    apiKey,
    api: 'openai-completions',
    models: [
      {
        id: model,
        name: model,
        reasoning: false,
        input: ['text' as const],
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        contextWindow: 131_072,
        maxTokens: 4_096,
      },
    ],
  }
  const harness = new HarnessAgent({
    harness: createPi({ providers: { policy }, thinkingLevel: 'off', reattachInProcess: false }),
    model: `policy/${model}`,
    instructions,
    sandbox: createJustBashSandbox(),
    // The harness pins an earlier release of the AI SDK, whose tools are the same but for their types.
    tools: tools as object as ToolSet,
  })
  const session = await harness.createSession()
  try {
    const { text } = await harness.generate({ session, prompt: questionOf(task), abortSignal: signal })
    return text
  } finally {
    await session.destroy()
  }
}
