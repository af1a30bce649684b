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

/** A lead with two agents as its tools, which may work at once. Nothing is declared. */
export async function agent(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext) {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: baseUrl, apiKey }), tracingDisabled: true })
  const ask = (kind: string) =>
    new Agent({ name: kind, instructions: `${instructions} You know the ${kind}.`, tools: [lookupTool], model }).asTool({
      toolName: `ask_${kind}`,
      toolDescription: `Asks about ${kind}.`,
    })
  const lead = new Agent({
    name: 'lead',
    instructions: 'Ask about each element, then answer.',
    tools: [ask('metals'), ask('gases')],
    model,
  })
  const { finalOutput } = await runner.run(lead, questionOf(task), { signal })
  return finalOutput ?? null
}
