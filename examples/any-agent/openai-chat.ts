import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import OpenAI from 'openai'
import { zodFunction } from 'openai/helpers/zod'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

function ask(task: AgentTask, { baseUrl, apiKey, model }: AgentFunctionContext) {
  const client = new OpenAI({ baseURL: baseUrl, apiKey })
  const body = {
    model,
    messages: [
      { role: 'system' as const, content: instructions },
      { role: 'user' as const, content: questionOf(task) },
    ],
    tools: [
      zodFunction({
        name: 'lookup',
        description: lookupDescription,
        parameters: z.object({ name: z.string() }),
        function: ({ name }) => lookup(name),
      }),
    ],
  }
  return { client, body }
}

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { client, body } = ask(task, context)
  return await client.chat.completions.runTools(body, { signal: context.signal }).finalContent()
}

export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  const { client, body } = ask(task, context)
  return await client.chat.completions.runTools({ ...body, stream: true }, { signal: context.signal }).finalContent()
}
