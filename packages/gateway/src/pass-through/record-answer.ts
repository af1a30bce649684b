import { type ChatCallOutcome, type FinishReason, preciseNow, type Sampling, TrainError, type Turn } from '@aworld-train/core'
import { messagesOf } from '../call-kind.ts'
import { add } from '../counters.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { keepTurn, type ServedCall } from '../served-call.ts'
import { type AnswerRecord, holdAnswers, markDelivered, tokenLimit, turnModel } from '../session-state.ts'
import type { EngineCall } from './engine-call.ts'
import { isStream } from './pass-on.ts'
import type { NumberedTurn } from './recorder.ts'

/** Time at which a call was sent or answered, and the version of the engine's weights at that time. */
interface Moment {
  readonly at: number
  readonly version: number
}

export interface RecordAnswerOptions {
  readonly model: ChatModelRoute
  readonly call: EngineCall
  /** `null` if the call ended before the engine reported its outcome. */
  readonly outcome: ChatCallOutcome | null
  readonly sampling: Sampling
  readonly began: Moment
  readonly abandoned: boolean
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/**
 * Reads an answer in the recorder thread and adds its turn to the session. Resolves when the turn is durable. Rejects with
 * POLICY_RESPONSE_INVALID if the answer has no tokens.
 */
export async function recordAnswer(served: ServedCall, options: RecordAnswerOptions): Promise<void> {
  const { parts, session, agent } = served.options
  const { model, call, abandoned, broken } = options
  const { request, sink } = call
  const { recorder } = parts
  const answers = holdAnswers(agent, session, model, recorder)
  for (const record of agent.over.splice(0)) recorder.forget(record)
  const ended = { at: preciseNow(), version: model.engine.weightVersion() }
  const { chunks: answer } = sink
  const stream = isStream(sink.contentType)
  const reading = recorder.read({ record: answers.id, reader: model.engine.reader, stream, request, answer, broken })
  // A waiting call needs to know how many tokens this one has sampled.
  if (session.tokenBudget.waiting() > 0) recorder.flush()
  const read = await reading.catch((error: TrainError) => {
    if (!abandoned && error.code === 'POLICY_RESPONSE_INVALID') session.unreadable ??= error
    throw error
  })
  if (session.sealed) throw new TrainError('GATEWAY_FAILED', 'The session ended before the answer was read.')
  const turn = toTurn(served, answers, read, options, ended)
  addTurn(served, answers, read, turn)
  await keepTurn(served, turn)
}

/**
 * The weights that sampled each token, as the engine reports them, else as one span. If an update happened during the call, it has the
 * lowest and highest version that may have sampled.
 */
function weightsOf({ weightVersions }: NumberedTurn, versions: readonly number[]): Pick<Turn, 'weightVersions' | 'mixedVersions'> {
  if (weightVersions.length > 0) return { weightVersions: [...weightVersions] }
  const [lowest, highest] = [Math.min(...versions), Math.max(...versions)]
  const spans = [{ fromToken: 0, version: lowest }]
  return lowest === highest ? { weightVersions: spans } : { weightVersions: spans, mixedVersions: { lowest, highest } }
}

/** Gives the turn its place among all turns of its agent, which may belong to several records. */
function toTurn(
  { options: { session, agent, parts } }: ServedCall,
  { tokens, indexes, turns }: AnswerRecord,
  read: NumberedTurn,
  answered: RecordAnswerOptions,
  ended: Moment,
): Turn {
  const { model, call, outcome, sampling, began, abandoned } = answered
  const { message, finishReason, usage, messagesDelta, branchReason, rolloutLogprobs } = read
  const { unusedFields = read.unusedFields } = call
  const parent = read.parent === null ? null : indexes.get(read.parent)!
  return {
    version: 2,
    index: turns.length,
    agent: agent.name,
    trajectory: agent.id,
    attempt: session.request.attempt,
    parent,
    branchReasons: branchReason ? [branchReason] : [],
    ...tokens.add(read.call, read.parent, read.suffixTokenIds, read.completionTokenIds),
    rolloutLogprobs,
    ...weightsOf(read, outcome?.weightVersions ?? [began.version, ended.version]),
    finishReason,
    delivered: abandoned ? 'abandoned' : 'pending',
    messagesDelta: [...messagesDelta],
    message,
    toolCalls: message.toolCalls ?? [],
    sampling,
    usage,
    timing: { startedAt: began.at, endedAt: ended.at },
    // A constrained server chooses among fewer tokens than the policy has.
    capture: { tokens: 'engine-reported', logprobs: call.fields.constrained === true ? 'processed' : model.engine.logprobs },
    ...parts.callKind({
      agent: agent.name,
      tools: call.fields.tools ?? [],
      messages: () => messagesOf(turns, parent, messagesDelta),
    }),
    ...turnModel(agent, model),
    ...(unusedFields && Object.keys(unusedFields).length > 0 && { unusedFields }),
  }
}

function addTurn({ options }: ServedCall, { turns, indexes }: AnswerRecord, read: NumberedTurn, turn: Turn): void {
  const { parts, session } = options
  const { counters } = parts
  turns.push(turn)
  indexes.set(read.call, turn.index)
  markDelivered(turns, turn.parent)
  const { length } = turn.completionTokenIds
  session.sampledTokens += length
  counters.sampledTokens += length
  if (read.branchReason) add(counters.branches, read.branchReason)
  else counters.continuations++
  const budget = session.request.maxSessionTokens ?? Number.POSITIVE_INFINITY
  if (turn.finishReason.unified === 'length' && session.sampledTokens >= budget) session.failure ??= tokenLimit(session)
}
