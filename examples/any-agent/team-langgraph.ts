import { type StructuredToolInterface, tool } from '@langchain/core/tools'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { type AgentFunctionContext, defineAgents } from 'aworld-train'
import { z } from 'zod'
import { instructions, lookup, lookupDescription, questionOf } from './elements.ts'

type Endpoint = ReturnType<AgentFunctionContext['policy']>

const schema = z.object({ name: z.string() })
const lookupTool = tool(({ name }) => lookup(name), { name: 'lookup', description: lookupDescription, schema })

function createAsker({ baseUrl, apiKey, model }: Endpoint, tools: StructuredToolInterface[], signal: AbortSignal) {
  const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL: baseUrl } }).bindTools(tools)
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('policy', async ({ messages }) => ({ messages: [await llm.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'policy')
    .addConditionalEdges('policy', toolsCondition, ['tools', END])
    .addEdge('tools', 'policy')
    .compile()
  return async (system: string, question: string) => {
    const input = {
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: question },
      ],
    }
    const { messages } = await graph.invoke(input, { signal })
    return messages.at(-1)?.text ?? null
  }
}

/** A lead that may ask several readers at once. Each question has a record of its own, named by the tool call that asked. */
export const agent = defineAgents({ lead: {}, reader: {} }, (task, { policy, signal }) => {
  const read = tool(
    ({ name }, { toolCall }) =>
      createAsker(policy('reader', toolCall.id), [lookupTool], signal)(instructions, `What is the number of ${name}?`),
    { name: 'read', description: 'Asks a reader about an element.', schema },
  )
  return createAsker(policy('lead'), [read], signal)('Ask a reader about each element, then answer.', questionOf(task))
})
