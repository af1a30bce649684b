import { type ChatCallOutcome, type ChatEngine, preciseNow, spliceMembers } from '@aworld-train/core'
import { type FinishReason, type Sampling, toTrainError } from '@aworld-train/protocol'
import { CallAborted } from '../active-call.ts'
import { affinityOf, firstQuestion } from '../affinity.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { effectiveSampling } from '../effective-sampling.ts'
import { badRequest } from '../failure.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { type ServedCall, settleDelivery } from '../served-call.ts'
import { checkBudget } from '../session-state.ts'
import { sendNothing } from '../stages/encode.ts'
import type { EngineCall } from './engine-call.ts'
import { engineFailure } from './engine-failure.ts'
import { narrowTools } from './narrow-tools.ts'
import { type AnswerSink, isStream, PassedAnswer } from './pass-on.ts'
import type { PeekedFields } from './peek-fields.ts'
import { type RecordAnswerOptions, recordAnswer } from './record-answer.ts'
import { translateCall } from './translate-call.ts'

/** The finish reason of a completion that broke off, named as in the turns of token engines. */
function brokenBy(cause: unknown): FinishReason {
  if (!(cause instanceof CallAborted)) return { unified: 'error', raw: toTrainError(cause, 'POLICY_UNAVAILABLE').code }
  return { unified: cause.why === 'token-limit' ? 'length' : 'aborted', raw: cause.why }
}

/** Reserves the tokens that the call may sample in the rollout's budget. */
async function holdTokens({ options, active }: ServedCall, { maxTokens = Number.POSITIVE_INFINITY }: PeekedFields): Promise<number> {
  const { tokenBudget, request } = options.session
  const most = Math.min(request.sampling.maxTokens, maxTokens)
  const room = tokenBudget.tryHold(most)
  if (room !== null) return room
  // The tokens that earlier calls sampled are known only when their answers have been read.
  options.parts.recorder.flush()
  return await tokenBudget.hold(most, active.signal)
}

/** Waits for a place and takes one turn of the budget. Returns the sampling, limited to `budgetRoom` tokens. */
async function admit({ options, active }: ServedCall, fields: PeekedFields, budgetRoom: number): Promise<Sampling> {
  const { parts, session } = options
  await parts.gate.enter(active.signal)
  try {
    await parts.recorder.room()
    active.signal.throwIfAborted()
    if (session.unreadable) throw session.unreadable
    checkBudget(session)
  } catch (cause) {
    parts.gate.leave()
    throw cause
  }
  session.turnsTaken++
  return effectiveSampling(session.request.sampling, {
    maxTokens: fields.maxTokens ?? null,
    stop: [],
    contextRoom: Number.POSITIVE_INFINITY,
    budgetRoom,
  })
}

/**
 * Members that are added at the end of a request: the engine's own name for the model, the usage of a stream (which says how many
 * tokens there are), the trainer's sampling, the fields that make the engine report tokens, and the client's number of alternatives,
 * which overrides the one before it.
 */
function membersOf({ model: { name }, splice }: ChatEngine, sampling: Sampling, { model, topLogprobs, askForUsage }: PeekedFields): string {
  const renamed = model === name ? '' : `"model":${JSON.stringify(name)}`
  const usage = askForUsage === undefined ? '' : `"stream_options":${askForUsage}`
  const alternatives = topLogprobs === undefined ? '' : `"top_logprobs":${topLogprobs}`
  return [renamed, usage, splice(sampling), alternatives].filter((members) => members !== '').join(',')
}

/** Sends the request and passes its answer on. The place is free again afterwards. */
async function pass({ options, active }: ServedCall, engine: ChatEngine, call: EngineCall, sampling: Sampling): Promise<ChatCallOutcome> {
  const { parts, session, observed } = options
  const { request, fields, sink } = call
  try {
    observed.admitted()
    sink.watch = observed
    const chatCall = {
      body: spliceMembers(request, membersOf(engine, sampling, fields)),
      stream: fields.stream === true,
      affinity: affinityOf(session.request, () => firstQuestion(request)),
      traceHeaders: observed.traceHeaders(),
    }
    return await engine.send(chatCall, sink, active.signal)
  } finally {
    parts.gate.leave()
  }
}

/**
 * Throws if an engine's answer is not whole. A client that has already received the engine's error in its
 * stream gets the end of the stream.
 */
function checkAnswer(name: string, sink: AnswerSink): void {
  const refused = sink.error()
  if (refused) throw engineFailure(name, refused)
  const gaveUp = sink.gaveUp()
  if (gaveUp) {
    sink.end()
    throw engineFailure(name, gaveUp)
  }
  sink.check()
}

/** Asks the engine, passes its answer on and records it. Resolves when the turn is durable and the answer was handed over. */
async function askEngine(served: ServedCall, model: ChatModelRoute, call: EngineCall): Promise<void> {
  const { options, active, progress } = served
  const { session, dialect, response, observed } = options
  const { fields, sink } = call
  const { engine } = model
  observed.routed(model.name)
  progress.stream = fields.stream === true
  active.keepAwake(() => {
    if (sink.isBetweenEvents()) sendNothing(dialect, response, progress.stream)
  })
  const budgetRoom = await holdTokens(served, fields)
  try {
    const sampling = await admit(served, fields, budgetRoom)
    const frame = { model, call, sampling, began: { at: preciseNow(), version: engine.weightVersion() } }
    let outcome: ChatCallOutcome
    try {
      outcome = await pass(served, engine, call, sampling)
      checkAnswer(model.name, sink)
    } catch (error) {
      const cause = active.signal.aborted ? active.signal.reason : error
      await recordBroken(served, { ...frame, outcome: null, abandoned: true, broken: brokenBy(cause) })
      throw cause
    }
    const loss = active.lost()
    if (!loss) {
      active.startSending()
      sink.end()
      observed.answered()
    }
    session.recordings++
    try {
      await recordAnswer(served, { ...frame, outcome, abandoned: loss !== null, broken: null })
    } finally {
      session.recordings--
    }
    if (loss) throw new CallAborted(loss)
  } finally {
    session.tokenBudget.release(budgetRoom)
  }
  if (!(await active.sent)) throw new CallAborted('client-closed')
  if (progress.turn) settleDelivery(options, progress.turn, true)
}

/** Records an answer that broke off, if whole events of its stream name the sampled tokens. */
async function recordBroken(served: ServedCall, options: RecordAnswerOptions): Promise<void> {
  const { session, parts } = served.options
  const { sink } = options.call
  const begun = sink.error() === null && sink.chunks.length > 0 && isStream(sink.contentType)
  if (!begun || session.sealed) {
    session.turnsTaken--
    return
  }
  try {
    await recordAnswer(served, options)
  } catch {
    session.turnsTaken--
    parts.counters.abandonedTurns++
  }
}

/** Serves a call to an engine that renders prompts itself. Chat Completions pass through as they are; other dialects are translated. */
export async function serveChatCall(served: ServedCall, model: ChatModelRoute, fields: PeekedFields): Promise<void> {
  const { dialect, body, response } = served.options
  if (dialect !== chatCompletions) return askEngine(served, model, translateCall(served, model))
  if (fields.n !== undefined && fields.n !== 1) throw badRequest(`"n" is ${fields.n}; a call samples one completion.`, 'n')
  if (Number.isNaN(fields.topLogprobs)) throw badRequest('"top_logprobs" must be a whole number, such as 5.', 'top_logprobs')
  const request = fields.choosesAmong === true ? narrowTools(body) : body
  await askEngine(served, model, {
    request,
    unusedFields: undefined,
    fields,
    sink: new PassedAnswer(response, fields.askForUsage !== undefined),
  })
}
