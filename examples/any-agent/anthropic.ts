import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

function ask(task: AgentTask, { baseUrl, apiKey, model }: AgentFunctionContext) {
  const client = new Anthropic({ baseURL: baseUrl, apiKey })
  const body = {
    model,
    max_tokens: 1024,
    system: instructions,
    messages: [{ role: 'user' as const, content: questionOf(task) }],
    tools: [
      betaZodTool({
        name: 'lookup',
        description: lookupDescription,
        inputSchema: z.object({ name: z.string() }),
        run: ({ name }) => lookup(name),
      }),
    ],
  }
  return { client, body }
}

const textOf = ({ content }: Anthropic.Beta.BetaMessage) => content.map((block) => (block.type === 'text' ? block.text : '')).join('')

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { client, body } = ask(task, context)
  return textOf(await client.beta.messages.toolRunner(body, { signal: context.signal }).runUntilDone())
}

export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  const { client, body } = ask(task, context)
  return textOf(await client.beta.messages.toolRunner({ ...body, stream: true }, { signal: context.signal }).runUntilDone())
}
