import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, streamText, tool } from 'ai'
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

function ask(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const policy = createOpenAICompatible({ name: 'policy', baseURL: baseUrl, apiKey })
  return { model: policy(model), instructions, prompt: questionOf(task), tools, stopWhen: isStepCount(8), abortSignal: signal }
}

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { text } = await generateText(ask(task, context))
  return text
}

export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  return await streamText(ask(task, context)).text
}
