import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { defineAgents } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const lookupTool = tool({
  name: 'lookup',
  description: lookupDescription,
  parameters: z.object({ name: z.string() }),
  execute: async ({ name }) => lookup(name),
})

/** One client for both agents, which are told apart by the models that they ask for. */
export const agent = defineAgents({ triage: {}, metals: {} }, async (task, { baseUrl, apiKey, signal }) => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: baseUrl, apiKey }), tracingDisabled: true })
  const metals = new Agent({ name: 'metals', instructions, tools: [lookupTool], model: 'metals' })
  const triage = new Agent({ name: 'triage', instructions: 'Hand over to who knows, then answer.', handoffs: [metals], model: 'triage' })
  const { finalOutput } = await runner.run(triage, questionOf(task), { signal })
  return finalOutput ?? null
})
