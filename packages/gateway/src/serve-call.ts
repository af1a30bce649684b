import type { ServerResponse } from 'node:http'
import type { RenderWorker } from '@aworld-train/chat'
import { type TrainError, type Turn, toTrainError } from '@aworld-train/protocol'
import { ActiveCall, CallAborted } from './active-call.ts'
import type { Dialect } from './call.ts'
import type { Counters } from './counters.ts'
import { toHttpFailure, unknownUrl } from './failure.ts'
import type { FrozenClients } from './frozen/frozen-client.ts'
import { serveFrozenCall } from './frozen/serve-frozen-call.ts'
import type { Gate } from './gate.ts'
import type { HistoryWatch } from './history-watch.ts'
import { chooseModel, type ModelTable } from './models/model-table.ts'
import type { CallObservation, Observer } from './observe/observer.ts'
import type { GatewayLimits, GatewayLogger } from './options.ts'
import { peekFields } from './pass-through/peek-fields.ts'
import type { Recorder } from './pass-through/recorder.ts'
import { serveChatCall } from './pass-through/serve-chat-call.ts'
import { serveTokenCall } from './serve-token-call.ts'
import { type AgentState, type SessionState, tokenLimit } from './session-state.ts'
import { type Answer, sendFailure } from './stages/encode.ts'

/** What all calls of a gateway share. */
export interface GatewayParts {
  readonly models: ModelTable
  readonly seed: number
  readonly gate: Gate
  readonly counters: Counters
  readonly observer: Observer
  readonly limits: GatewayLimits
  readonly logger: GatewayLogger | undefined
  readonly history: HistoryWatch
  /** Encodes long prompts in a thread of its own. */
  readonly renderWorker: RenderWorker
  /** Reads the answers of chat engines; its thread starts with the first of them. */
  readonly recorder: Recorder
  readonly frozen: FrozenClients
}

export interface ServeCallOptions {
  readonly parts: GatewayParts
  readonly session: SessionState
  readonly agent: AgentState
  readonly dialect: Dialect
  readonly body: Buffer
  readonly response: ServerResponse
  readonly observed: CallObservation
  readonly requestId: string
}

/** How far a call has come, however it goes on: its recorded turn, the answer that has begun, and whether that is a stream. */
export interface Progress {
  turn: Pick<Turn, 'delivered'> | null
  answer: Answer | null
  stream: boolean
}

/** A call on its way. */
export interface ServedCall {
  readonly options: ServeCallOptions
  readonly active: ActiveCall
  readonly progress: Progress
}

/** The error a call ended with, in the words of the catalogue; `null` where nobody is left to hear it. */
function toCallError(error: unknown, session: SessionState): TrainError | null {
  if (!(error instanceof CallAborted)) return toTrainError(error, 'GATEWAY_FAILED')
  if (error.why === 'client-closed') return null
  return error.why === 'token-limit' ? tokenLimit(session) : unknownUrl()
}

/** Limits and failures of policy, store and configuration are the session's; a bad request is its client's alone. */
const concernsSession = ({ boundary, code }: TrainError) =>
  boundary === 'policy' || boundary === 'store' || boundary === 'config' || code === 'AGENT_LIMIT' || code === 'GATEWAY_FAILED'

/** What became of a turn's answer, unless a later request has said so already. */
export function settleDelivery({ session, parts }: ServeCallOptions, turn: Pick<Turn, 'delivered'>, sent: boolean): void {
  if (!session.sealed && turn.delivered !== 'delivered') turn.delivered = sent ? 'delivered' : 'abandoned'
  if (turn.delivered === 'abandoned') parts.counters.abandonedTurns++
}

async function serve(served: ServedCall): Promise<void> {
  const { parts, agent, body } = served.options
  if (parts.models.onlyTokens) return serveTokenCall(served, null)
  const fields = peekFields(body)
  const model = chooseModel(parts.models, agent, fields.model)
  if (model.kind === 'chat') return serveChatCall(served, model, fields)
  return model.kind === 'token' ? serveTokenCall(served, model) : serveFrozenCall(served, model)
}

function endCall({ options, active, progress }: ServedCall, cause: unknown): void {
  const { parts, session, agent, dialect, response, observed, requestId } = options
  const { counters, logger } = parts
  if (cause === undefined) observed.ended(null, null)
  else {
    counters.failures++
    if (progress.turn) settleDelivery(options, progress.turn, false)
    const error = toCallError(cause, session)
    observed.ended(error, active.lost())
    if (error) {
      if (concernsSession(error)) session.failure ??= error
      const failure = toHttpFailure(error, { sampled: progress.turn !== null, requestId })
      if (failure.status >= 500) logger?.warn(error.message, { rollout: session.request.rollout, agent: agent.name, requestId, error })
      if (progress.answer) progress.answer.fail(failure)
      else sendFailure(dialect, response, failure, progress.stream)
    }
  }
  session.calls.delete(active)
  active.settle()
}

/** A call under a valid URL, from its bytes to its answer. Never throws: what goes wrong is answered, and kept by the session. */
export function serveCall(options: ServeCallOptions): void {
  options.parts.counters.calls++
  const served: ServedCall = {
    options,
    active: new ActiveCall(options.response),
    progress: { turn: null, answer: null, stream: false },
  }
  options.session.calls.add(served.active)
  serve(served).then(
    () => endCall(served, undefined),
    (cause: unknown) => endCall(served, cause),
  )
}
