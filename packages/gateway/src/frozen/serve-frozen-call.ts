import { preciseNow, type Sampling, TrainError, type Turn, type Usage } from '@aworld-train/core'
import { CallAborted } from '../active-call.ts'
import { reserve } from '../budget.ts'
import type { ModelCall } from '../call.ts'
import type { ServerAnswer } from '../dialects/server-answer.ts'
import type { FrozenModel } from '../models/model-table.ts'
import { createTextAnswer, type RelayedAnswer, relay } from '../relay.ts'
import { keepTurn, type ServedCall } from '../served-call.ts'
import { checkBudget, checkFrozenBudget, holdTurns, noteWait, type SessionState, tokenLimit } from '../session-state.ts'
import { recordedFields } from '../stages/recorded-fields.ts'
import { frozenApis } from './apis.ts'
import { requestKey } from './canonical-request.ts'
import { claimsOf } from './claims.ts'
import { costOf, estimatedUsage } from './cost.ts'
import { FrozenAnswer } from './frozen-answer.ts'
import type { FrozenClient } from './frozen-client.ts'
import { type FrozenRequest, toFrozenRequest } from './frozen-request.ts'

/** The sampling that the request asks the third party for. The trainer's settings do not apply to it. */
function requestedSampling(call: ModelCall | null, { maxTokens }: Sampling): Sampling {
  const { temperature = 1, topP = 1, topK = 0, seed = 0 } = call?.requestedSampling ?? {}
  return { temperature, topP, topK, seed, stop: [...(call?.stop ?? [])], maxTokens: call?.maxTokens ?? maxTokens }
}

function charge(session: SessionState, { price, evaluated }: FrozenModel, usage: Usage): void {
  session.frozenTokens += usage.promptTokens + usage.completionTokens
  session.longestFrozenAnswer = Math.max(session.longestFrozenAnswer, usage.completionTokens)
  session.cost += price ? costOf(usage, price) : 0
  if (!evaluated) return
  session.sampledTokens += usage.completionTokens
  // A third party is not told of the budget, so its answer may pass it.
  if (session.sampledTokens > (session.request.maxSessionTokens ?? Number.POSITIVE_INFINITY)) session.failure ??= tokenLimit(session)
}

interface Recorded {
  readonly request: FrozenRequest
  readonly answer: ServerAnswer
  readonly startedAt: number
}

/**
 * Adds a turn of text and resolves when it is durable. Every such turn is a root, because only tokens of the policy continue each other.
 */
async function record(served: ServedCall, model: FrozenModel, { request, answer, startedAt }: Recorded): Promise<void> {
  const { session, agent } = served.options
  if (session.sealed) throw new CallAborted('session-closed')
  const turns = holdTurns(agent, session)
  const { message, finishReason, usage } = answer.completion
  const isReported = usage.promptTokens + usage.completionTokens > 0
  charge(session, model, isReported ? usage : estimatedUsage(request.call, [message]))
  const cost = model.price && costOf(usage, model.price)
  const turn: Turn = {
    version: 2,
    index: turns.length,
    agent: agent.name,
    trajectory: agent.id,
    attempt: session.request.attempt,
    parent: null,
    branchReasons: ['frozen-model'],
    promptTokenIds: new Int32Array(0),
    completionTokenIds: new Int32Array(0),
    rolloutLogprobs: new Float32Array(0),
    weightVersions: [],
    finishReason,
    delivered: 'pending',
    messagesDelta: request.call ? [...request.call.messages] : [{ role: 'user', content: request.body.toString('utf8') }],
    message,
    toolCalls: message.toolCalls ?? [],
    sampling: requestedSampling(request.call, session.request.sampling),
    usage,
    timing: { startedAt, endedAt: preciseNow() },
    capture: { tokens: 'none', logprobs: 'raw' },
    model: model.name,
    ...(answer.model !== null && { responseModel: answer.model }),
    ...(cost !== undefined && { cost }),
    ...recordedFields(request.call?.unusedFields ?? {}),
  }
  turns.push(turn)
  await keepTurn(served, turn)
}

/** Answers from the recording. Rejects with FROZEN_REPLAY_MISSING. */
async function replay(cassette: NonNullable<FrozenClient['cassette']>, key: string, model: FrozenModel, sink: FrozenAnswer): Promise<void> {
  const occurrence = cassette.occurrence(key)
  const found = await cassette.find(key, occurrence)
  if (!found) {
    const message = `No answer of model "${model.name}" is recorded for this request (${key}, number ${occurrence + 1}) in ${model.cassette?.path}; record the run again.`
    throw new TrainError('FROZEN_REPLAY_MISSING', message)
  }
  sink.onHead(found.contentType)
  // The whole replayed answer is in memory, so nothing waits for the socket to drain.
  sink.onData(Buffer.from(found.text), () => {})
}

/** Asks the third party or its recording. Resolves when the answer is whole. */
async function send(served: ServedCall, model: FrozenModel, request: FrozenRequest): Promise<RelayedAnswer> {
  const { options, active, progress } = served
  const { parts, session, agent, response, observed } = options
  checkFrozenBudget(session)
  if (!request.same) progress.answer = createTextAnswer(options, model.name, request.call!, `f${agent.frozenCalls++}`)
  observed.admitted()
  const client = parts.frozen.get(model.name)
  const sink = new FrozenAnswer({
    name: model.name,
    api: frozenApis[model.dialect],
    request,
    redact: client.redact,
    onModel: (answered) => parts.modelNames.answered(model, answered),
    response,
    translated: progress.answer,
    onFirst: () => observed.firstToken(),
  })
  const { cassette } = client
  const { taskId, sample } = session.request
  const key = cassette ? requestKey({ taskId, sample, agent: agent.name, model: model.name }, request.json) : ''
  const isReplay = cassette?.mode === 'replay'
  if (isReplay) await replay(cassette, key, model, sink)
  else
    await client
      .send(request.body, sink, { signal: active.signal, onWait: (waits) => noteWait(session, waits) })
      .catch((cause: unknown) => {
        // The answer costs money even if its client has left.
        if (active.signal.aborted || sink.text() !== '') charge(session, model, estimatedUsage(request.call, [], sink.saidCharacters()))
        throw cause
      })
  const answer = sink.read()
  if (!isReplay) await cassette?.add(key, { status: 200, contentType: sink.contentType, text: sink.text() })
  return { end: () => sink.end(), record: () => record(served, model, { request, answer, startedAt: sink.sentAt }) }
}

/** Like `send`, for a model that is evaluated: the call takes one turn of the rollout. */
async function sendAsTurn(served: ServedCall, model: FrozenModel, request: FrozenRequest): Promise<RelayedAnswer> {
  const { session } = served.options
  checkBudget(session)
  session.turnsTaken++
  return await send(served, model, request).catch((cause: unknown) => {
    session.turnsTaken--
    throw cause
  })
}

/**
 * Serves a call to a third party's model: it is passed on under the gateway's own key, recorded as text, and
 * paid from the rollout's budgets.
 */
export async function serveFrozenCall(served: ServedCall, model: FrozenModel): Promise<void> {
  const { session, observed } = served.options
  observed.routed(model.name)
  const request = toFrozenRequest(served, model)
  await relay(served, {
    stream: request.stream,
    recordsFirst: true,
    // Events of a third party are passed on whole.
    isBetweenEvents: () => true,
    reserve: () => reserve(claimsOf(session, model, request), served.active.signal),
    send: () => (model.evaluated ? sendAsTurn : send)(served, model, request),
  })
}
