import type { ForcedCall, PreparedPrompt, RunWork } from '@aworld-train/chat'
import { TrainError } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import { add } from '../counters.ts'
import type { TokenModel } from '../models/model-table.ts'
import { responseRoom } from '../response-room.ts'
import type { GatewayParts } from '../served-call.ts'
import { type AgentRecord, markDelivered, type SessionState } from '../session-state.ts'

export interface PrepareOptions {
  readonly agentRecord: AgentRecord
  readonly call: ModelCall
  readonly model: TokenModel
  readonly parts: Pick<GatewayParts, 'counters' | 'history' | 'encoder'>
  readonly session: SessionState
  readonly run: RunWork
  /** Ends the wait for a long prompt. */
  readonly signal: AbortSignal
}

/**
 * Matches and renders the prompt of a call, as the continuation of a recorded turn or as a branch. Rejects with POLICY_CONTEXT_OVERFLOW.
 */
export async function prepare({
  agentRecord,
  call,
  model: { engine, chat, cutToolAnswers },
  parts,
  session,
  run,
  signal,
}: PrepareOptions): Promise<PreparedPrompt> {
  const { turns, conversation, agent } = agentRecord
  const { request: limits } = session
  const { tools, toolsJson } = call
  const messages = cutToolAnswers(call.messages)
  const isAbandoned = (turn: number) => turns[turn]?.delivered === 'abandoned'
  const isContinued = (turn: number) => Array.from(agent.underway).some(({ matched }) => matched === turn)
  const request = { messages, tools, toolsJson, forced: forcedCall(call), isAbandoned, isContinued }
  // A call is under way from the moment of its match, because many calls may match before one of them samples.
  const prepare: typeof conversation.prepare = (prepareRequest) => {
    const prompt = conversation.prepare(prepareRequest)
    agent.underway.add(prompt)
    return prompt
  }
  const prepared = await chat.prepareAsync({ prepare }, request, { encoder: parts.encoder, owner: session, signal, run })
  const { model } = engine
  const { length } = prepared.promptTokenIds
  if (length >= model.contextLength) {
    agent.underway.delete(prepared)
    const message = `The conversation has ${length} tokens, the context of "${model.name}" ${model.contextLength}; shorten it, or use a model with a longer context.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow', param: 'messages' } })
  }
  if (responseRoom(turns, prepared, limits) < 1) {
    agent.underway.delete(prepared)
    const message = `Rollout "${limits.rollout}" has used the ${limits.maxResponseTokens} tokens that a conversation may have from its first answer on; raise maxResponseTokens, or make the agent say and read less.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow', param: 'messages' } })
  }
  markDelivered(turns, prepared.matched)
  const { counters, history } = parts
  if (prepared.parent !== null) counters.continuations++
  for (const reason of prepared.branchReasons) add(counters.branches, reason)
  for (const kind in prepared.tolerated) add(counters.tolerated, kind, prepared.tolerated[kind])
  if (prepared.divergence) history.diverged({ rollout: limits.rollout, agent: agent.name }, prepared.divergence)
  return prepared
}

/** The call that a tool choice forces, whose opening ends the prompt. */
export function forcedCall({ toolChoice: { kind, name } }: ModelCall): ForcedCall | undefined {
  if (kind === 'named' && name !== undefined) return { kind, name }
  return kind === 'required' || kind === 'named' ? { kind: 'required' } : undefined
}
