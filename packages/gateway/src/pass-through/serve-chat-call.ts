import {
  type ChatCallOutcome,
  type ChatEngine,
  type FinishReason,
  preciseNow,
  type Sampling,
  spliceMembers,
  toTrainError,
} from '@aworld-train/core'
import { CallAborted } from '../active-call.ts'
import { affinityOf, firstQuestion } from '../affinity.ts'
import { reserve } from '../budget.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { effectiveSampling } from '../effective-sampling.ts'
import { badRequest } from '../failure.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { type RelayedCall, relay } from '../relay.ts'
import type { ServedCall } from '../served-call.ts'
import { checkBudget } from '../session-state.ts'
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
  const { parts, session, agent, observed } = options
  const { request, fields, sink } = call
  try {
    observed.admitted()
    sink.watch = observed
    const chatCall = {
      body: spliceMembers(request, membersOf(engine, sampling, fields)),
      stream: fields.stream === true,
      affinity: affinityOf(session.request, agent, () => firstQuestion(request)),
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

/** What a call to engine `model` does differently from other relayed calls. */
function toRelayed(served: ServedCall, model: ChatModelRoute, call: EngineCall): RelayedCall {
  const { options, active } = served
  const { parts, session } = options
  const { fields, sink } = call
  const { engine } = model
  return {
    stream: fields.stream === true,
    recordsFirst: false,
    isBetweenEvents: () => sink.isBetweenEvents(),
    reserve() {
      const most = Math.min(session.request.sampling.maxTokens, fields.maxTokens ?? Number.POSITIVE_INFINITY)
      // The tokens that earlier calls sampled are known only when their answers have been read.
      return reserve([{ budget: session.tokenBudget, most }], active.signal, () => parts.recorder.flush())
    },
    async send({ amounts: [budgetRoom] }) {
      const sampling = await admit(served, fields, budgetRoom!)
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
      return {
        end: () => sink.end(),
        record: (abandoned) => recordAnswer(served, { ...frame, outcome, abandoned, broken: null }),
      }
    },
  }
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

/** Chat Completions pass through as they are; calls in other dialects are translated. */
function toEngineCall(served: ServedCall, model: ChatModelRoute, fields: PeekedFields): EngineCall {
  const { dialect, body, response } = served.options
  if (dialect !== chatCompletions) return translateCall(served, model)
  if (fields.n !== undefined && fields.n !== 1) throw badRequest(`"n" is ${fields.n}; a call samples one completion.`, 'n')
  if (Number.isNaN(fields.topLogprobs)) throw badRequest('"top_logprobs" must be a whole number, such as 5.', 'top_logprobs')
  return {
    request: fields.choosesAmong === true ? narrowTools(body) : body,
    unusedFields: undefined,
    fields,
    sink: new PassedAnswer(response, fields.askForUsage !== undefined),
  }
}

/** Serves a call to an engine that renders prompts itself. */
export async function serveChatCall(served: ServedCall, model: ChatModelRoute, fields: PeekedFields): Promise<void> {
  const call = toEngineCall(served, model, fields)
  served.options.observed.routed(model.name)
  await relay(served, toRelayed(served, model, call))
}
