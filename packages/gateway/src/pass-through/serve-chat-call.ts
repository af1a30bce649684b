import type { ChatCallOutcome } from '@aworld-train/core'
import { type FinishReason, type Sampling, toTrainError } from '@aworld-train/protocol'
import { CallAborted } from '../active-call.ts'
import { affinityOf, firstQuestion } from '../affinity.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { effectiveSampling } from '../effective-sampling.ts'
import { badRequest } from '../failure.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { type CallEnd, type ServedCall, settleDelivery } from '../serve-call.ts'
import { checkBudget, type SessionState } from '../session-state.ts'
import { sendNothing } from '../stages/encode.ts'
import { engineFailure } from './engine-failure.ts'
import { narrowTools } from './narrow-tools.ts'
import { type AnswerSink, isStream, PassedAnswer } from './pass-on.ts'
import type { PeekedFields } from './peek-fields.ts'
import { type RecordAnswerOptions, recordAnswer } from './record-answer.ts'
import { spliceBody } from './splice-body.ts'
import { translateCall } from './translate-call.ts'

/** What is asked of an engine, in Chat Completions, and who hears the answer. */
export interface Asked {
  readonly request: Buffer
  /** Fields that the client's own request had, as JSON; empty where it is the request. */
  readonly unusedFields: Buffer
  readonly fields: PeekedFields
  readonly sink: AnswerSink
}

const none = Buffer.alloc(0)

/** How a completion ended that broke off, in the words that token engines' turns have. */
function brokenBy(cause: unknown): FinishReason {
  if (!(cause instanceof CallAborted)) return { unified: 'error', raw: toTrainError(cause, 'POLICY_UNAVAILABLE').code }
  return { unified: cause.why === 'token-limit' ? 'length' : 'aborted', raw: cause.why }
}

function ask({ options, active, progress }: ServedCall, { fields, sink }: Asked): void {
  const { dialect, response } = options
  const stream = fields.stream === true
  progress.stream = stream
  active.keepAwake.begin(() => {
    if (sink.isBetweenEvents()) sendNothing(dialect, response, stream)
  })
}

/** The most that a call may sample, whatever the rollout's budget. */
const mostTokens = ({ request }: SessionState, { maxTokens = Number.POSITIVE_INFINITY }: PeekedFields) =>
  Math.min(request.sampling.maxTokens, maxTokens)

/** Takes a turn of the budget, in which `held` tokens may be sampled; nothing comes between the look at it and the taking. */
function takeTurn({ active, options: { session } }: ServedCall, fields: PeekedFields, held: number): Sampling {
  const aborted = active.aborted()
  if (aborted) throw aborted
  if (session.unreadable) throw session.unreadable
  checkBudget(session)
  session.turnsTaken++
  return effectiveSampling(session.request.sampling, {
    maxTokens: fields.maxTokens ?? null,
    stop: [],
    contextRoom: Number.POSITIVE_INFINITY,
    budgetRoom: held,
  })
}

/** Waits for the tokens that the call may sample, where they are not held yet, and for a place; resolves with the tokens. */
async function waitForPlace({ options, active }: ServedCall, most: number, given: number | null): Promise<number> {
  const { gate, recorder } = options.parts
  const { tokenBudget } = options.session
  // What earlier calls sampled is known when their answers have been read.
  if (given === null) recorder.flush()
  const held = given ?? (await tokenBudget.hold(most, active.signal))
  try {
    await gate.enter(active.signal)
  } catch (cause) {
    tokenBudget.release(held)
    throw cause
  }
  for (let room = recorder.room(); room; room = recorder.room()) await room
  return held
}

/** One call to an engine, from its admission until its turn is durable and its answer was handed over. */
class EngineCall {
  readonly #served: ServedCall
  readonly #model: ChatModelRoute
  readonly #asked: Asked
  readonly #ended: CallEnd
  readonly #startedAt = Date.now()
  readonly #versionBefore: number
  #sampling: Sampling | null = null
  /** Tokens of the rollout's budget; `null` when they have been given back. */
  #held: number | null

  constructor(served: ServedCall, model: ChatModelRoute, asked: Asked, held: number, ended: CallEnd) {
    this.#served = served
    this.#model = model
    this.#asked = asked
    this.#held = held
    this.#ended = (cause) => {
      this.#release()
      ended(cause)
    }
    this.#versionBefore = model.engine.weightVersion()
  }

  /** The call has its place, which is given back however this ends. */
  send(): void {
    const { options, active } = this.#served
    const { session, observed, parts } = options
    const { request, fields, sink } = this.#asked
    const { engine, members } = this.#model
    try {
      const sampling = takeTurn(this.#served, fields, this.#held!)
      this.#sampling = sampling
      observed.admitted()
      sink.watch = observed
      const affinity =
        session.request.maxKeptTurns === undefined ? session.affinity : affinityOf(session.request, () => firstQuestion(request))
      const body = spliceBody(request, members.of(sampling, fields, sampling === session.request.sampling), members.toBytes)
      const call = { body, stream: fields.stream === true, affinity, traceHeaders: observed.traceHeaders() }
      engine.send(call, sink, active.signal).then(
        (outcome) => this.#answered(null, outcome),
        (error: unknown) => this.#answered(error, null),
      )
    } catch (cause) {
      if (this.#sampling) session.turnsTaken--
      parts.gate.leave()
      this.#ended(cause)
    }
  }

  #answered(error: unknown, outcome: ChatCallOutcome | null): void {
    const { options, active } = this.#served
    const { session, parts, observed } = options
    const { sink } = this.#asked
    parts.gate.leave()
    try {
      if (!outcome) throw error
      const refused = sink.error()
      if (refused) throw engineFailure(this.#model.name, refused)
      const gaveUp = sink.gaveUp()
      if (gaveUp) {
        sink.end()
        throw engineFailure(this.#model.name, gaveUp)
      }
      sink.check()
    } catch (cause) {
      this.#failed(active.aborted() ?? cause)
      return
    }
    const loss = active.lost()
    if (!loss) {
      active.startSending()
      sink.end()
      observed.answered()
    }
    session.recordings++
    recordAnswer(this.#served, this.#toRecord(outcome, loss !== null, null), (problem) => {
      session.recordings--
      this.#release()
      if (problem) this.#ended(problem)
      else if (loss) this.#ended(new CallAborted(loss))
      else active.whenSent((handedOver) => this.#sent(handedOver))
    })
  }

  #release(): void {
    if (this.#held !== null) this.#served.options.session.tokenBudget.release(this.#held)
    this.#held = null
  }

  #sent(handedOver: boolean): void {
    const { options, progress } = this.#served
    if (!handedOver) {
      this.#ended(new CallAborted('client-closed'))
      return
    }
    if (progress.turn) settleDelivery(options, progress.turn, true)
    this.#ended()
  }

  /** What was sampled until then is kept where the engine has said which tokens that were: in the whole events of a stream. */
  #failed(cause: unknown): void {
    const { session, parts } = this.#served.options
    const { sink } = this.#asked
    const begun = sink.error() === null && sink.chunks.length > 0 && isStream(sink.contentType)
    if (!begun || session.sealed) {
      session.turnsTaken--
      this.#ended(cause)
      return
    }
    recordAnswer(this.#served, this.#toRecord(null, true, brokenBy(cause)), (problem) => {
      if (problem) {
        session.turnsTaken--
        parts.counters.abandonedTurns++
      }
      this.#ended(cause)
    })
  }

  #toRecord(outcome: ChatCallOutcome | null, abandoned: boolean, broken: FinishReason | null): RecordAnswerOptions {
    const { request, unusedFields, sink, fields } = this.#asked
    return {
      model: this.#model,
      request,
      unusedFields,
      sink,
      outcome,
      sampling: this.#sampling!,
      startedAt: this.#startedAt,
      versionBefore: this.#versionBefore,
      abandoned,
      broken,
      constrained: fields.constrained === true,
    }
  }
}

/** Asks the engine, passes its answer on, and has it recorded. */
function askEngine(served: ServedCall, model: ChatModelRoute, asked: Asked, ended: CallEnd): void {
  const { parts, session, observed } = served.options
  observed.routed(model.name)
  ask(served, asked)
  const send = (held: number) => new EngineCall(served, model, asked, held, ended).send()
  const aborted = served.active.aborted()
  if (aborted) {
    ended(aborted)
    return
  }
  const most = mostTokens(session, asked.fields)
  const held = session.tokenBudget.tryHold(most)
  if (held !== null && parts.recorder.room() === null && parts.gate.tryEnter()) send(held)
  else waitForPlace(served, most, held).then(send, ended)
}

/** A call to an engine that renders on its own side. Chat Completions pass through unparsed; other dialects are translated. */
export function serveChatCall(served: ServedCall, model: ChatModelRoute, fields: PeekedFields, ended: CallEnd): void {
  const { dialect, body, response } = served.options
  if (dialect !== chatCompletions) {
    askEngine(served, model, translateCall(served, model), ended)
    return
  }
  if (fields.n !== undefined && fields.n !== 1) throw badRequest(`"n" is ${fields.n}; a call samples one completion.`, 'n')
  if (Number.isNaN(fields.topLogprobs)) throw badRequest('"top_logprobs" must be a whole number, such as 5.', 'top_logprobs')
  const request = fields.choosesAmong === true ? narrowTools(body) : body
  askEngine(served, model, { request, unusedFields: none, fields, sink: new PassedAnswer(response) }, ended)
}
