import type { ServerResponse } from 'node:http'
import { TrainError, type Turn, toTrainError } from '@aworld-train/protocol'
import { CallAborted, createActiveCall } from './active-call.ts'
import type { Dialect } from './call.ts'
import { add, type Counters } from './counters.ts'
import { toHttpFailure, unknownUrl } from './failure.ts'
import type { Gate } from './gate.ts'
import type { HistoryWatch } from './history-watch.ts'
import type { ModelTable } from './models/model-table.ts'
import type { GatewayLimits, GatewayLogger } from './options.ts'
import { type Outcome, type Progress, sampleTurn } from './sample-turn.ts'
import { type AgentState, type SessionState, tokenLimit } from './session-state.ts'
import { decode } from './stages/decode.ts'
import { sendFailure, sendNothing } from './stages/encode.ts'

/** What all calls of a gateway share. */
export interface GatewayParts {
  readonly models: ModelTable
  readonly seed: number
  readonly gate: Gate
  readonly counters: Counters
  readonly limits: GatewayLimits
  readonly logger: GatewayLogger | undefined
  readonly history: HistoryWatch
}

export interface ServeCallOptions {
  readonly parts: GatewayParts
  readonly session: SessionState
  readonly agent: AgentState
  readonly dialect: Dialect
  readonly body: Buffer
  readonly response: ServerResponse
}

/** The error a call ended with, in the words of the catalogue; `null` where nobody is left to hear it. */
function toCallError(error: unknown, session: SessionState): TrainError | null {
  if (!(error instanceof CallAborted)) return toTrainError(error, 'GATEWAY_FAILED')
  if (error.why === 'client-closed') return null
  return error.why === 'token-limit' ? tokenLimit(session) : unknownUrl()
}

/** Limits and failures of policy and store are the session's; a bad request is its client's alone. */
const concernsSession = ({ boundary, code }: TrainError) =>
  boundary === 'policy' || boundary === 'store' || code === 'AGENT_LIMIT' || code === 'GATEWAY_FAILED'

function settleDelivery({ session, parts }: ServeCallOptions, turn: Turn, sent: boolean): void {
  if (!session.sealed && turn.delivered !== 'delivered') turn.delivered = sent ? 'delivered' : 'abandoned'
  if (turn.delivered === 'abandoned') parts.counters.abandonedTurns++
}

/** A call under a valid URL, from its bytes to its answer. Never rejects: what goes wrong is answered, and kept by the session. */
export async function serveCall(options: ServeCallOptions): Promise<void> {
  const { parts, session, agent, dialect, body, response } = options
  const { counters, gate, logger } = parts
  counters.calls++
  const active = createActiveCall(response)
  const progress: Progress = { turn: null, answer: null }
  let stream = false
  session.calls.add(active)
  try {
    const call = decode(dialect, body, agent.memory)
    for (const name of call.ignored) add(counters.ignored, name)
    const model = agent.fixed || call.model === null ? agent.home : parts.models.find(call.model)
    if (model.kind !== 'token') throw new TrainError('GATEWAY_FAILED', `Model "${model.name}" cannot be served yet.`)
    stream = call.stream
    active.keepAwake.begin(() => sendNothing(dialect, response, call.stream))
    const arrival = agent.arrivals++
    await gate.enter(active.signal)
    let outcome: Outcome
    try {
      outcome = await sampleTurn(options, { model, call, active, arrival, progress })
    } finally {
      gate.leave()
    }
    const loss = active.lost()
    if (loss) throw new CallAborted(loss)
    active.startSending()
    outcome.answer.end(outcome.completion)
    if (!(await active.sent())) throw new CallAborted('client-closed')
    if (progress.turn) settleDelivery(options, progress.turn, true)
  } catch (cause) {
    counters.failures++
    if (progress.turn) settleDelivery(options, progress.turn, false)
    const error = toCallError(cause, session)
    if (error) {
      if (concernsSession(error)) session.failure ??= error
      const failure = toHttpFailure(error, { sampled: progress.turn !== null })
      if (failure.status >= 500) logger?.warn(error.message, { rollout: session.request.rollout, agent: agent.name, error })
      if (progress.answer) progress.answer.fail(failure)
      else sendFailure(dialect, response, failure, stream)
    }
  } finally {
    session.calls.delete(active)
    active.settle()
  }
}
