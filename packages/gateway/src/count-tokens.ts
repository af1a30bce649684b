import type { RenderWorker } from '@aworld-train/chat'
import type { ModelCall } from './call.ts'
import { badRequest } from './failure.ts'
import { chooseModel, type ModelTable } from './models/model-table.ts'
import type { AgentState } from './session-state.ts'
import { forcedCall } from './stages/prepare.ts'

export interface CountTokensOptions {
  readonly models: ModelTable
  readonly agent: AgentState
  /** Encodes long prompts, as it does those of calls. */
  readonly renderWorker: RenderWorker
  /** Ends the wait for a long prompt. */
  readonly signal: AbortSignal
}

/** Length of the prompt that `call` would have now. Rejects with GATEWAY_BAD_REQUEST for a model that renders on its own side. */
export async function countTokens({ models, agent, renderWorker, signal }: CountTokensOptions, call: ModelCall): Promise<number> {
  const model = chooseModel(models, agent, call.model ?? undefined)
  if (model.kind !== 'token') {
    throw badRequest(`Model "${model.name}" renders its prompts itself, so their tokens cannot be counted here.`, 'model', 404)
  }
  const { chat } = model
  const conversation = agent.conversations.get(model.name) ?? chat.createConversation({ now: agent.now })
  const { messages, tools, toolsJson } = call
  const request = { messages, tools, toolsJson, forced: forcedCall(call) }
  const prepared = await chat.prepareAsync(conversation, request, { worker: renderWorker, signal })
  return prepared.promptTokenIds.length
}
