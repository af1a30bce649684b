import { TrainError } from '@aworld-train/core'
import { errors } from 'undici'
import { toServerError } from '../http/server-error.ts'
import type { ExchangeEnd } from './exchange.ts'

const stages = {
  connect: 'could not be reached',
  sent: 'closed the connection without an answer',
  answered: 'closed the connection in the middle of its answer',
}

/** Error codes for an answer that is not valid HTTP/1.1. */
const unreadable = [errors.HTTPParserError, errors.ResponseContentLengthMismatchError, errors.HeadersOverflowError]

/** The error of a call whose exchange failed. */
export function toCallError(server: string, end: Exclude<ExchangeEnd, { kind: 'answered' }>): TrainError {
  if (end.kind === 'refused') return toServerError({ server, ...end })
  const { stage, cause } = end
  const details = { server, stage }
  // If a name has several addresses and none answers, the combined error has no message.
  const why = cause.message || `${(cause as NodeJS.ErrnoException).code}`
  if (unreadable.some((kind) => cause instanceof kind))
    return new TrainError('POLICY_UNAVAILABLE', `${server} cannot be understood: ${why}; check what runs there.`, { cause, details })
  return new TrainError('POLICY_UNAVAILABLE', `${server} ${stages[stage]}: ${why}; check that it runs.`, { cause, details })
}

export function restarted(server: string): TrainError {
  const message = `${server} started again while it answered, with other weights than were published; the call is lost.`
  return new TrainError('POLICY_STALE_WEIGHTS', message, { details: { server } })
}
