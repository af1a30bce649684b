import { type TrainError, toTrainError } from '@aworld-train/core'
import { ActiveCall, CallAborted } from './active-call.ts'
import { toHttpFailure, unknownUrl } from './failure.ts'
import { serveFrozenCall } from './frozen/serve-frozen-call.ts'
import { chooseModel } from './models/model-table.ts'
import { peekFields } from './pass-through/peek-fields.ts'
import { serveChatCall } from './pass-through/serve-chat-call.ts'
import { serveTokenCall } from './serve-token-call.ts'
import { type ServeCallOptions, type ServedCall, settleDelivery } from './served-call.ts'
import { type SessionState, tokenLimit } from './session-state.ts'
import { sendFailure } from './stages/encode.ts'

/** The error that ended a call, as one of the catalogue; `null` if its client has left. */
function toCallError(error: unknown, session: SessionState): TrainError | null {
  if (!(error instanceof CallAborted)) return toTrainError(error, 'GATEWAY_FAILED')
  if (error.why === 'client-closed') return null
  return error.why === 'token-limit' ? tokenLimit(session) : unknownUrl()
}

/** Whether an error is a failure of the session. Limits and failures of policy, store and configuration are; a bad request is not. */
const concernsSession = ({ boundary, code }: TrainError) =>
  boundary === 'policy' || boundary === 'store' || boundary === 'config' || code === 'AGENT_LIMIT' || code === 'GATEWAY_FAILED'

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

/**
 * Serves a call under a valid URL, from its bytes to its answer. Never throws: an error is sent as the answer, and the session keeps it.
 */
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
