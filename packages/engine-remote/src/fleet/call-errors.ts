import { TrainError } from '@aworld-train/protocol'
import { toServerError } from '../http/server-error.ts'
import { ResponseError } from '../http1/response-head.ts'
import type { ExchangeEnd } from './exchange.ts'

const stages = {
  connect: 'could not be reached',
  sent: 'closed the connection without an answer',
  answered: 'closed the connection in the middle of its answer',
}

/** What a call ends with whose exchange did not go well. */
export function toCallError(server: string, end: Exclude<ExchangeEnd, { kind: 'answered' }>): TrainError {
  if (end.kind === 'refused') return toServerError({ server, ...end })
  const { stage, cause } = end
  const details = { server, stage }
  if (cause instanceof ResponseError)
    return new TrainError('POLICY_UNAVAILABLE', `${server} cannot be understood: ${cause.message}; check what runs there.`, {
      cause,
      details,
    })
  return new TrainError('POLICY_UNAVAILABLE', `${server} ${stages[stage]}: ${cause.message}; check that it runs.`, { cause, details })
}

export function restarted(server: string): TrainError {
  const message = `${server} started again while it answered, with other weights than were published; the call is lost.`
  return new TrainError('POLICY_STALE_WEIGHTS', message, { details: { server } })
}
