import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { createTool } from '@mastra/core/tools'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const lookupTool = createTool({
  id: 'lookup',
  description: lookupDescription,
  inputSchema: z.object({ name: z.string() }),
  execute: async ({ name }) => lookup(name),
})

function create({ baseUrl, apiKey, model }: AgentFunctionContext) {
  const elements = new Agent({
    id: 'elements',
    name: 'Elements',
    instructions,
    model: { id: `policy/${model}`, url: baseUrl, apiKey },
    tools: { lookup: lookupTool },
  })
  return new Mastra({ agents: { elements }, logger: false }).getAgent('elements')
}

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { steps } = await create(context).generate(questionOf(task), { maxSteps: 8, abortSignal: context.signal })
  return steps.at(-1)?.text ?? null
}

export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  const output = await create(context).stream(questionOf(task), { maxSteps: 8, abortSignal: context.signal })
  return (await output.steps).at(-1)?.text ?? null
}
