import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import OpenAI from 'openai'
import type { Response, ResponseCreateParamsBase, ResponseInput } from 'openai/resources/responses/responses'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const maxTurns = 8

const lookupTool = {
  type: 'function' as const,
  name: 'lookup',
  description: lookupDescription,
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
  strict: true,
}

type Respond = (client: OpenAI, body: Omit<ResponseCreateParamsBase, 'stream'>, signal: AbortSignal) => Promise<Response>

async function loop(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext, respond: Respond) {
  const client = new OpenAI({ baseURL: baseUrl, apiKey })
  const input: ResponseInput = [{ role: 'user', content: questionOf(task) }]
  for (let turn = 0; turn < maxTurns; turn++) {
    const response = await respond(client, { model, instructions, input, tools: [lookupTool], store: false }, signal)
    const calls = response.output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) return response.output_text
    input.push(...(response.output as ResponseInput))
    for (const { call_id, arguments: text } of calls) {
      const { name } = JSON.parse(text) as { name: string }
      input.push({ type: 'function_call_output', call_id, output: lookup(name) })
    }
  }
  return null
}

export function agent(task: AgentTask, context: AgentFunctionContext) {
  return loop(task, context, (client, body, signal) => client.responses.create(body, { signal }))
}

export function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  return loop(task, context, (client, body, signal) => client.responses.stream(body, { signal }).finalResponse())
}
