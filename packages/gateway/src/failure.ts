import { type ErrorCode, TrainError } from '@aworld-train/protocol'

/** What a client is told of an error, before a dialect gives it its shape. */
export interface HttpFailure {
  readonly status: number
  readonly type: string
  readonly code: string
  /** The field of the request that is wrong. */
  readonly param: string | null
  readonly message: string
  /** `false`: a client that repeats the call would only spend more. */
  readonly retry: boolean
}

/** A GATEWAY_BAD_REQUEST that names the field, as a path such as `messages[2].role`. */
export function badRequest(message: string, param: string | null = null, status = 400): TrainError {
  return new TrainError('GATEWAY_BAD_REQUEST', message, { details: { param, status } })
}

/** The one answer to a URL that is unknown, closed or forged. */
export function unknownUrl(): TrainError {
  return new TrainError('GATEWAY_UNAUTHORIZED', 'Unknown URL. Use the base URL of a rollout that is still running.')
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly code: string
}

const answers: Partial<Record<ErrorCode, Answer>> = {
  GATEWAY_UNAUTHORIZED: { status: 404, type: 'invalid_request_error', code: 'not_found' },
  GATEWAY_BAD_REQUEST: { status: 400, type: 'invalid_request_error', code: 'invalid_request' },
  GATEWAY_MODEL_UNKNOWN: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  TEMPLATE_UNSUPPORTED: { status: 400, type: 'invalid_request_error', code: 'template_unsupported' },
  POLICY_CONTEXT_OVERFLOW: { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded' },
  AGENT_LIMIT: { status: 400, type: 'invalid_request_error', code: 'limit_reached' },
}

const statusCodes: Readonly<Record<number, string>> = { 405: 'method_not_allowed', 413: 'request_too_large' }

/** The answer to `error`. A client may repeat a call only where nothing was sampled in it. */
export function toHttpFailure(error: TrainError, { sampled }: { sampled: boolean }): HttpFailure {
  const { code, message, retryable, details } = error
  const answer = answers[code]
  if (answer) {
    const status = typeof details?.['status'] === 'number' ? details['status'] : answer.status
    const param = typeof details?.['param'] === 'string' ? details['param'] : null
    return { ...answer, status, code: statusCodes[status] ?? answer.code, param, message, retry: false }
  }
  const retry = retryable && !sampled
  return { status: retry ? 503 : 500, type: 'server_error', code: code.toLowerCase(), param: null, message, retry }
}
