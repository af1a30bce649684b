import type { ChatCallOutcome } from '@aworld-train/core'
import type { Sampling } from '@aworld-train/protocol'
import { CallAborted } from '../active-call.ts'
import { affinityOf, firstQuestion } from '../affinity.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { effectiveSampling } from '../effective-sampling.ts'
import { badRequest } from '../failure.ts'
import type { ChatModelRoute } from '../models/model-table.ts'
import { type ServedCall, settleDelivery } from '../serve-call.ts'
import { checkBudget } from '../session-state.ts'
import { sendNothing } from '../stages/encode.ts'
import { engineFailure } from './engine-failure.ts'
import { type AnswerSink, isStream, PassedAnswer } from './pass-on.ts'
import type { PeekedFields } from './peek-fields.ts'
import { recordAnswer } from './record-answer.ts'
import { spliceBody } from './splice-body.ts'
import { translateCall } from './translate-call.ts'

/** What is asked of an engine, in Chat Completions, and who hears the answer. */
export interface Asked {
  readonly request: Buffer
  readonly fields: PeekedFields
  readonly sink: AnswerSink
}

function ask({ options, active, progress }: ServedCall, { fields, sink }: Asked): void {
  const { dialect, response } = options
  const stream = fields.stream === true
  progress.stream = stream
  active.keepAwake.begin(() => {
    if (sink.isBetweenEvents()) sendNothing(dialect, response, stream)
  })
}

/** Waits for a place, and takes a turn of the budget: nothing comes between the look at it and the taking. */
async function admit({ options, active }: ServedCall, fields: PeekedFields): Promise<Sampling> {
  const { parts, session } = options
  await parts.gate.enter(active.signal)
  try {
    await parts.recorder.room()
    const { sampling, maxTokens: budget = Number.POSITIVE_INFINITY } = session.request
    // What earlier calls sampled is known when their answers have been read.
    if (budget !== Number.POSITIVE_INFINITY && session.recordings.size > 0) {
      parts.recorder.flush()
      await Promise.all(session.recordings)
    }
    active.signal.throwIfAborted()
    if (session.unreadable) throw session.unreadable
    checkBudget(session)
    session.turnsTaken++
    return effectiveSampling(sampling, {
      maxTokens: fields.maxTokens ?? null,
      stop: [],
      contextRoom: Number.POSITIVE_INFINITY,
      budgetRoom: budget - session.sampledTokens,
    })
  } catch (cause) {
    parts.gate.leave()
    throw cause
  }
}

/** Asks the engine, passes its answer on, and has it recorded. Resolves when the turn is durable and its answer was handed over. */
async function askEngine(served: ServedCall, model: ChatModelRoute, asked: Asked): Promise<void> {
  const { options, active } = served
  const { parts, session } = options
  const { request, fields, sink } = asked
  options.observed.routed(model.name)
  ask(served, asked)
  const sampling = await admit(served, fields)
  options.observed.admitted()
  sink.onFirst = options.observed.firstToken
  const affinity = affinityOf(session.request, () => firstQuestion(request))
  const versionBefore = model.engine.weightVersion()
  const common = { model, request, sink, sampling, startedAt: Date.now(), versionBefore, constrained: fields.constrained === true }
  let outcome: ChatCallOutcome
  try {
    const body = spliceBody(request, model.members.of(sampling, fields.model, sampling === session.request.sampling))
    outcome = await model.engine.send({ body, stream: fields.stream === true, affinity }, sink, active.signal)
    if (sink.error() === null) sink.check()
  } catch (cause) {
    session.turnsTaken--
    const begun = sink.error() === null && sink.chunks.length > 0 && isStream(sink.contentType)
    // What was sampled until then is kept where the engine has said which tokens that were.
    if (begun && !session.sealed) {
      await recordAnswer(served, { ...common, outcome: null, abandoned: true }).then(
        () => session.turnsTaken++,
        () => parts.counters.abandonedTurns++,
      )
    }
    throw active.signal.aborted ? active.signal.reason : cause
  } finally {
    parts.gate.leave()
  }
  const error = sink.error()
  if (error) {
    session.turnsTaken--
    throw engineFailure(model.name, error)
  }
  const loss = active.lost()
  if (!loss) {
    active.startSending()
    sink.end()
    options.observed.answered()
  }
  const recording = recordAnswer(served, { ...common, outcome, abandoned: loss !== null })
  // The engine has answered, and the recorder has a copy.
  if (request === options.body) parts.bodies.give(request)
  const settled = recording.then(
    () => {},
    () => {},
  )
  session.recordings.add(settled)
  try {
    await recording
  } finally {
    session.recordings.delete(settled)
  }
  if (loss) throw new CallAborted(loss)
  if (!(await active.sent())) throw new CallAborted('client-closed')
  if (served.progress.turn) settleDelivery(options, served.progress.turn, true)
}

/** A call to an engine that renders on its own side. Chat Completions pass through unparsed; other dialects are translated. */
export async function serveChatCall(served: ServedCall, model: ChatModelRoute, fields: PeekedFields): Promise<void> {
  const { dialect, body, response } = served.options
  if (dialect !== chatCompletions) {
    await askEngine(served, model, translateCall(served, model))
    return
  }
  if (fields.n !== undefined && fields.n !== 1) throw badRequest(`"n" is ${fields.n}; a call samples one completion.`, 'n')
  await askEngine(served, model, { request: body, fields, sink: new PassedAnswer(response) })
}
