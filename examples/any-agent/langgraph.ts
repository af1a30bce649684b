import { tool } from '@langchain/core/tools'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import type { AgentFunctionContext, TrainingTask } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

const tools = [tool(({ name }) => lookup(name), { name: 'lookup', description: lookupDescription, schema: z.object({ name: z.string() }) })]

function createGraph({ baseUrl, apiKey, model }: AgentFunctionContext, streaming: boolean) {
  const llm = new ChatOpenAI({ model, apiKey, streaming, configuration: { baseURL: baseUrl } }).bindTools(tools)
  return new StateGraph(MessagesAnnotation)
    .addNode('policy', async ({ messages }) => ({ messages: [await llm.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'policy')
    .addConditionalEdges('policy', toolsCondition, ['tools', END])
    .addEdge('tools', 'policy')
    .compile()
}

async function run(task: TrainingTask, context: AgentFunctionContext, streaming: boolean) {
  const messages = [
    { role: 'system', content: instructions },
    { role: 'user', content: questionOf(task) },
  ]
  const state = await createGraph(context, streaming).invoke({ messages }, { signal: context.signal })
  return state.messages.at(-1)?.text ?? null
}

export const agent = (task: TrainingTask, context: AgentFunctionContext) => run(task, context, false)

export const streamingAgent = (task: TrainingTask, context: AgentFunctionContext) => run(task, context, true)
