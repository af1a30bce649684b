import type { Encoder, RunWork } from '@aworld-train/chat'
import type { ModelCall } from './call.ts'
import { badRequest } from './failure.ts'
import { chooseModel, type ModelTable } from './models/model-table.ts'
import { maxPromptBytes } from './models/size-limits.ts'
import type { AgentState, SessionState } from './session-state.ts'
import { forcedCall } from './stages/prepare.ts'

export interface CountTokensOptions {
  readonly models: ModelTable
  readonly session: SessionState
  readonly agent: AgentState
  /** Encodes long texts, like those of calls. */
  readonly encoder: Encoder
  readonly run: RunWork
  /** Ends the wait for a long prompt. */
  readonly signal: AbortSignal
}

/**
 * Returns the length that the prompt of `call` would have. Rejects with GATEWAY_BAD_REQUEST for a model whose
 * server renders prompts itself.
 */
export async function countTokens(options: CountTokensOptions, call: ModelCall): Promise<number> {
  const { models, session, agent, encoder, run, signal } = options
  const model = chooseModel(models, agent, call.model ?? undefined)
  if (model.kind !== 'token') {
    throw badRequest(`Model "${model.name}" renders its prompts itself, so their tokens cannot be counted here.`, 'model', 404)
  }
  const { chat } = model
  const conversation =
    agent.conversations.get(model.name) ?? chat.createConversation({ now: agent.now, maxPromptBytes: maxPromptBytes(model), ignore: [] })
  const { messages, tools, toolsJson } = call
  const request = { messages: model.cutToolAnswers(messages), tools, toolsJson, forced: forcedCall(call) }
  const prepared = await chat.prepareAsync(conversation, request, { encoder, owner: session, signal, run })
  return prepared.promptTokenIds.length
}
