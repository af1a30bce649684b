import type { ChatCallOutcome } from '@aworld-train/core'
import { type Sampling, TrainError, type Turn, toTrainError, type WeightVersionSpan } from '@aworld-train/protocol'
import { add } from '../counters.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import type { ServedCall } from '../serve-call.ts'
import { holdAnswers, markDelivered, tokenLimit, turnModel } from '../session-state.ts'
import type { AnswerSink } from './pass-on.ts'
import type { ReadTurn } from './recorder-protocol.ts'

export interface RecordAnswerOptions {
  readonly model: ChatModelRoute
  /** The request in Chat Completions. */
  readonly request: Uint8Array
  readonly sink: AnswerSink
  /** `null` where the call ended before the engine said how it went. */
  readonly outcome: ChatCallOutcome | null
  readonly sampling: Sampling
  readonly startedAt: number
  /** Of the weights, when the engine was asked. */
  readonly versionBefore: number
  readonly abandoned: boolean
  /** The server chose among fewer tokens than the policy has. */
  readonly constrained: boolean
}

/** Which weights sampled what: the engine's own word, else one span; where an update fell into the call, between which. */
function versions(
  reported: readonly WeightVersionSpan[] | undefined,
  during: readonly number[],
): Pick<Turn, 'weightVersions' | 'mixedVersions'> {
  if (reported && reported.length > 0) return { weightVersions: [...reported] }
  const lowest = Math.min(...during)
  const highest = Math.max(...during)
  const weightVersions = [{ fromToken: 0, version: lowest }]
  return lowest === highest ? { weightVersions } : { weightVersions, mixedVersions: { lowest, highest } }
}

/** Has an answer read and adds its turn to the session. Rejects with POLICY_RESPONSE_INVALID where it holds no tokens. */
export async function recordAnswer({ options, progress }: ServedCall, given: RecordAnswerOptions): Promise<void> {
  const { parts, session, agent } = options
  const { model, request, sink, outcome, sampling, startedAt, versionBefore, abandoned, constrained } = given
  const { counters, recorder } = parts
  const answers = holdAnswers(agent, session, model.name, recorder.newRecord)
  for (const record of agent.over.splice(0)) recorder.forget(record)
  const { contentType, chunks } = sink
  const endedAt = Date.now()
  const atEnd = outcome?.weightVersions ?? [versionBefore, model.engine.weightVersion()]
  let read: ReadTurn
  try {
    read = await recorder.read({
      record: answers.id,
      reader: model.engine.reader,
      contentType,
      request,
      answer: chunks,
    })
  } catch (cause) {
    const error = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
    if (!abandoned && error.code === 'POLICY_RESPONSE_INVALID') session.unreadable ??= error
    throw error
  }
  if (session.sealed) throw new TrainError('GATEWAY_FAILED', 'The session ended before the answer was read.')
  const { completion, messagesDelta, branchReason } = read
  const { promptTokenIds, completionTokenIds, rolloutLogprobs, message, finishReason, usage } = completion
  session.sampledTokens += completionTokenIds.length
  counters.sampledTokens += completionTokenIds.length
  if (branchReason) add(counters.branches, branchReason)
  else counters.continuations++
  const parent = read.parent === null ? null : (answers.indexes.get(read.parent) ?? null)
  markDelivered(answers.turns, parent)
  const turn: Turn = {
    version: 1,
    index: answers.turns.length,
    agent: agent.name,
    attempt: session.request.attempt,
    parent,
    branchReasons: branchReason ? [branchReason] : [],
    promptTokenIds,
    completionTokenIds,
    rolloutLogprobs,
    ...versions(completion.weightVersions, atEnd),
    finishReason,
    delivered: abandoned ? 'abandoned' : 'pending',
    messagesDelta: [...messagesDelta],
    message,
    toolCalls: message.toolCalls ?? [],
    sampling,
    usage,
    timing: { startedAt, endedAt },
    capture: { tokens: 'engine-reported', logprobs: constrained ? 'processed' : model.engine.logprobs },
    ...turnModel(agent, model),
  }
  answers.indexes.set(read.call, turn.index)
  answers.turns.push(turn)
  progress.turn = turn
  options.observed.recorded(turn)
  const budget = session.request.maxTokens ?? Number.POSITIVE_INFINITY
  if (finishReason.unified === 'length' && session.sampledTokens >= budget) session.failure ??= tokenLimit(session)
  try {
    await session.request.onTurn?.(agent.name, turn)
  } catch (cause) {
    throw toTrainError(cause, 'STORE_FAILED')
  }
}
