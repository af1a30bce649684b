import type { ModelCall } from './call.ts'
import { badRequest } from './failure.ts'
import { chooseModel, type ModelTable } from './models/model-table.ts'
import type { AgentState } from './session-state.ts'

/** Length of the prompt that `call` would have now. Throws GATEWAY_BAD_REQUEST for a model that renders on its own side. */
export function countTokens(models: ModelTable, agent: AgentState, call: ModelCall): number {
  const model = chooseModel(models, agent, call.model ?? undefined)
  if (model.kind !== 'token') {
    throw badRequest(`Model "${model.name}" renders its prompts itself, so their tokens cannot be counted here.`, 'model', 404)
  }
  const conversation = agent.conversations.get(model.name) ?? model.chat.createConversation({ now: agent.now })
  const { messages, tools, toolsJson } = call
  return conversation.prepare({ messages, tools, toolsJson }).promptTokenIds.length
}
