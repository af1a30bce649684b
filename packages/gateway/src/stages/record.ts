import type { ParsedCompletion, PreparedPrompt } from '@aworld-train/chat'
import type { Constraint, Sampling, Turn } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import type { ReadCallKind } from '../call-kind.ts'
import type { TokenModel } from '../models/model-table.ts'
import { type AgentRecord, turnModel } from '../session-state.ts'
import type { Generation } from './generate.ts'
import { recordedFields } from './recorded-fields.ts'

export interface RecordOptions {
  readonly agentRecord: AgentRecord
  readonly model: TokenModel
  readonly call: ModelCall
  readonly attempt: number
  readonly prepared: PreparedPrompt
  readonly generation: Generation
  readonly parsed: ParsedCompletion
  /** The sampling that was used, which may differ from the requested one. */
  readonly sampling: Sampling
  /** The form that the engine enforced. */
  readonly constraint: Constraint | undefined
  /** Whether nobody waits for the answer. */
  readonly abandoned: boolean
  readonly callKind: ReadCallKind
}

/** Adds a turn to its agent's record and to the conversation that later prompts continue. */
export function record(options: RecordOptions): Turn {
  const { agentRecord, model, call, attempt, prepared, generation, parsed, sampling, constraint, abandoned, callKind } = options
  const { agent, turns, conversation } = agentRecord
  const { tokenIds, logprobs, weightVersions, mixedVersions, finishReason, cachedTokens, startedAt, firstTokenAt, endedAt } = generation
  const { message, promptCallIds, issues } = parsed
  const turn: Turn = {
    version: 2,
    index: turns.length,
    agent: agent.name,
    trajectory: agent.id,
    attempt,
    parent: prepared.parent,
    branchReasons: [...prepared.branchReasons],
    promptTokenIds: prepared.promptTokenIds,
    completionTokenIds: tokenIds,
    rolloutLogprobs: logprobs,
    weightVersions: [...weightVersions],
    ...(mixedVersions && { mixedVersions }),
    finishReason: { unified: parsed.finishReason, raw: finishReason.raw },
    delivered: abandoned ? 'abandoned' : 'pending',
    messagesDelta: [...prepared.messagesDelta],
    message,
    toolCalls: message.toolCalls ?? [],
    ...(issues.length > 0 && { unparsed: [...issues] }),
    sampling,
    ...(constraint && { constraint }),
    usage: { promptTokens: prepared.promptTokenIds.length, completionTokens: tokenIds.length, cachedTokens },
    timing: { startedAt, endedAt },
    ...(firstTokenAt !== undefined && { firstTokenAt }),
    capture: { tokens: 'token-in', logprobs: constraint ? 'processed' : 'temperature' },
    ...callKind({ agent: agent.name, tools: call.tools.map(({ name }) => name), messages: () => prepared.messages }),
    ...turnModel(agent, model),
    ...recordedFields(call.unusedFields),
  }
  turns.push(turn)
  const truncated = !model.engine.model.stopTokenIds.includes(tokenIds.at(-1) ?? -1)
  conversation.record(turn.index, prepared, { tokenIds, message, truncated, promptCallIds })
  return turn
}
