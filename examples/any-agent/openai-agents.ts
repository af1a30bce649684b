import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const lookupTool = tool({
  name: 'lookup',
  description: lookupDescription,
  parameters: z.object({ name: z.string() }),
  execute: async ({ name }) => lookup(name),
})

function create({ baseUrl, apiKey, model }: AgentFunctionContext) {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: baseUrl, apiKey }), tracingDisabled: true })
  return { runner, elements: new Agent({ name: 'Elements', instructions, tools: [lookupTool], model }) }
}

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { runner, elements } = create(context)
  const { finalOutput } = await runner.run(elements, questionOf(task), { signal: context.signal })
  return finalOutput ?? null
}

export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  const { runner, elements } = create(context)
  const result = await runner.run(elements, questionOf(task), { stream: true, signal: context.signal })
  await result.completed
  return result.finalOutput ?? null
}
