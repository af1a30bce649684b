import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const parameters = z.object({ name: z.string() })
const lookupTool = tool({ name: 'lookup', description: lookupDescription, parameters, execute: async ({ name }) => lookup(name) })

/** OpenAI Agents over Chat Completions, where Responses is the default. */
export async function openaiAgentsChat(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext, stream: boolean) {
  const modelProvider = new OpenAIProvider({ baseURL: baseUrl, apiKey, useResponses: false })
  const runner = new Runner({ modelProvider, tracingDisabled: true })
  const elements = new Agent({ name: 'Elements', instructions, tools: [lookupTool], model })
  if (!stream) return (await runner.run(elements, questionOf(task), { signal })).finalOutput ?? null
  const result = await runner.run(elements, questionOf(task), { stream: true, signal })
  await result.completed
  return result.finalOutput ?? null
}

/** LangChain's model over Responses, where Chat Completions is the default, in a loop of its own. */
export async function langchainResponses(task: AgentTask, { baseUrl, apiKey, model, signal }: AgentFunctionContext, stream: boolean) {
  const lookupTool = langchainTool(({ name }) => lookup(name), { name: 'lookup', description: lookupDescription, schema: parameters })
  const options = { model, apiKey, useResponsesApi: true, configuration: { baseURL: baseUrl } }
  const llm = new ChatOpenAI(options).bindTools([lookupTool])
  const messages: Parameters<typeof llm.invoke>[0] & unknown[] = [
    { role: 'system', content: instructions },
    { role: 'user', content: questionOf(task) },
  ]
  for (let turn = 0; turn < 8; turn++) {
    const message = stream ? await gather(await llm.stream(messages, { signal })) : await llm.invoke(messages, { signal })
    if (!message?.tool_calls?.length) return message?.text ?? null
    messages.push(message)
    for (const call of message.tool_calls) messages.push(await lookupTool.invoke({ ...call, type: 'tool_call' }))
  }
  return null
}

async function gather<Chunk extends { concat(other: Chunk): Chunk }>(chunks: AsyncIterable<Chunk>): Promise<Chunk | undefined> {
  let message: Chunk | undefined
  for await (const chunk of chunks) message = message?.concat(chunk) ?? chunk
  return message
}
