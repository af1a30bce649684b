import { tool } from '@langchain/core/tools'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import type { AgentFunctionContext, AgentTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const tools = [tool(({ name }) => lookup(name), { name: 'lookup', description: lookupDescription, schema: z.object({ name: z.string() }) })]

function createGraph({ baseUrl, apiKey, model }: AgentFunctionContext) {
  const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL: baseUrl } }).bindTools(tools)
  return new StateGraph(MessagesAnnotation)
    .addNode('policy', async ({ messages }) => ({ messages: [await llm.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'policy')
    .addConditionalEdges('policy', toolsCondition, ['tools', END])
    .addEdge('tools', 'policy')
    .compile()
}

const inputOf = (task: AgentTask) => ({
  messages: [
    { role: 'system', content: instructions },
    { role: 'user', content: questionOf(task) },
  ],
})

export async function agent(task: AgentTask, context: AgentFunctionContext) {
  const { messages } = await createGraph(context).invoke(inputOf(task), { signal: context.signal })
  return messages.at(-1)?.text ?? null
}

/** The mode `messages` makes the graph stream its calls. With `streaming: true` in ChatOpenAI, its usage is counted with a table from the internet. */
export async function streamingAgent(task: AgentTask, context: AgentFunctionContext) {
  let answer: string | null = null
  const events = await createGraph(context).stream(inputOf(task), { streamMode: ['messages', 'values'], signal: context.signal })
  for await (const [mode, state] of events) if (mode === 'values') answer = state.messages.at(-1)?.text ?? null
  return answer
}
