import { type ErrorCode, TrainError } from '@aworld-train/core'

/** An error for a client, before a dialect gives it its shape. */
export interface HttpFailure {
  readonly status: number
  readonly type: string
  readonly code: string
  /** The field of the request that is wrong. */
  readonly param: string | null
  readonly message: string
  /** Whether the client should repeat the call. `false` if that would only cost more. */
  readonly retry: boolean
  /** Seconds until the client should repeat the call; `null` if unknown. */
  readonly retryAfterSeconds: number | null
  /** Id of the request, for the client and the log. */
  readonly requestId: string
  /** Methods of the path, if the request used another one. */
  readonly allow?: string | undefined
}

/** Leaves out the middle of a long message, which may quote the client. The advice at its end stays. */
export const shorten = (message: string) => (message.length > 1_000 ? `${message.slice(0, 400)} … ${message.slice(-300)}` : message)

/** A GATEWAY_BAD_REQUEST that names the field by a path such as `messages[2].role`. */
export function badRequest(message: string, param: string | null = null, status = 400, code?: string): TrainError {
  return new TrainError('GATEWAY_BAD_REQUEST', shorten(message), { details: { param, status, ...(code !== undefined && { code }) } })
}

/** Throws GATEWAY_BAD_REQUEST for a method that a path does not have. */
export function checkMethod(path: string, method: string | undefined, methods: readonly string[]): void {
  if (method !== undefined && methods.includes(method)) return
  const message = `"${shorten(path)}" answers ${methods.join(', ')}, not ${method}.`
  throw new TrainError('GATEWAY_BAD_REQUEST', message, { details: { param: null, status: 405, allow: methods.join(', ') } })
}

/** A GATEWAY_BAD_REQUEST for a body that is too large to be read. */
export function bodyTooLarge(maxBytes: number): TrainError {
  return badRequest(`The body is larger than ${maxBytes} bytes; shorten the conversation, or raise maxBodyBytes.`, null, 413)
}

/** A GATEWAY_INPUT_UNSUPPORTED that names the part by a path such as `messages[2].content[0].type`. */
export function unsupportedInput(kind: string, param: string): TrainError {
  const message = `"${param}" is "${kind}"; the policy reads text only. Send text in its place.`
  return new TrainError('GATEWAY_INPUT_UNSUPPORTED', shorten(message), { details: { param } })
}

/** The one answer to a URL that is unknown, closed or forged. */
export function unknownUrl(): TrainError {
  const message =
    'No agent is served under this URL. Use the whole base URL: "aworld-train serve" prints it for plain clients, the answer to POST /v1/sessions has one for each agent, and a rollout gives its own, which ends with it.'
  return new TrainError('GATEWAY_UNAUTHORIZED', message)
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly code: string
}

const answers: Partial<Record<ErrorCode, Answer>> = {
  SERVICE_UNAUTHORIZED: { status: 401, type: 'authentication_error', code: 'unauthorized' },
  GATEWAY_UNAUTHORIZED: { status: 404, type: 'invalid_request_error', code: 'not_found' },
  GATEWAY_BAD_REQUEST: { status: 400, type: 'invalid_request_error', code: 'invalid_request' },
  GATEWAY_INPUT_UNSUPPORTED: { status: 400, type: 'invalid_request_error', code: 'input_unsupported' },
  GATEWAY_MODEL_UNKNOWN: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  TEMPLATE_UNSUPPORTED: { status: 400, type: 'invalid_request_error', code: 'template_unsupported' },
  POLICY_CONTEXT_OVERFLOW: { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded' },
  POLICY_RATE_LIMITED: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  POLICY_VERSION_CONFLICT: { status: 409, type: 'invalid_request_error', code: 'version_conflict' },
  POLICY_RESPONSE_INVALID: { status: 502, type: 'server_error', code: 'policy_response_invalid' },
  FROZEN_MODEL_FAILED: { status: 502, type: 'server_error', code: 'frozen_model_failed' },
  AGENT_LIMIT: { status: 400, type: 'invalid_request_error', code: 'limit_reached' },
}

const statusCodes: Readonly<Record<number, string>> = { 405: 'method_not_allowed', 413: 'request_too_large' }

const numberOf = (value: unknown) => (typeof value === 'number' ? value : null)
const textOf = (value: unknown) => (typeof value === 'string' ? value : null)

/** The answer to `error`. A client may repeat a call only where nothing was sampled in it. */
export function toHttpFailure(
  error: TrainError,
  { sampled, requestId }: { readonly sampled: boolean; readonly requestId: string },
): HttpFailure {
  const { code, message, retryable, details } = error
  // An engine that was waited for in vain will not be back for the next call.
  const retry = retryable && !sampled && details?.['waitedMs'] === undefined
  const retryAfterSeconds = retry ? numberOf(details?.['retryAfterSeconds']) : null
  const answer = answers[code]
  if (answer) {
    const status = numberOf(details?.['status']) ?? answer.status
    const name = textOf(details?.['code']) ?? statusCodes[status] ?? answer.code
    const allow = textOf(details?.['allow']) ?? undefined
    return { ...answer, status, code: name, param: textOf(details?.['param']), message, retry, retryAfterSeconds, requestId, allow }
  }
  const status = retry ? 503 : 500
  return { status, type: 'server_error', code: code.toLowerCase(), param: null, message, retry, retryAfterSeconds, requestId }
}
