import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, tool } from 'ai'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

/** A lead that may ask several readers at once. Nothing is declared. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const policy = createOpenAICompatible({ name: 'policy', baseURL: baseUrl, apiKey })
  const settings = { model: policy(model), stopWhen: isStepCount(8), abortSignal: signal }
  const inputSchema = z.object({ name: z.string() })
  const tools = { lookup: tool({ description: lookupDescription, inputSchema, execute: async ({ name }) => lookup(name) }) }
  const read = tool({
    description: 'Asks a reader about an element.',
    inputSchema,
    execute: async ({ name }) => (await generateText({ ...settings, instructions, prompt: `What is the number of ${name}?`, tools })).text,
  })
  const lead = { ...settings, instructions: 'Ask a reader about each element, then answer.', prompt: questionOf(task), tools: { read } }
  const { text } = await generateText(lead)
  return text
}
