import { TrainError } from '@aworld-train/core'

/** Messages of a 400 for a prompt that leaves no room: of vLLM 0.32 (which then asks `/v1/completions` for 0 tokens) and SGLang 0.5. */
const overflow =
  /longer than the (?:maximum model length|model's context length)|maximum context length|exceeds? the (?:model's )?(?:maximum )?context|max_tokens must be at least 1, got 0/i

/** The message of FastAPI, which both servers use, for an unknown path. For an unknown model the servers name the model. */
const unknownRoute = 'Not Found'

/** An answer of a server with a status other than 2xx. */
export interface FailedResponse {
  readonly server: string
  readonly status: number
  readonly body: string
  readonly retryAfter: string | null
}

/** The server's own words: `error.message` of an OpenAI-style body, `detail` or `message` of others, else the beginning of the body. */
export function messageOf(body: string): string {
  try {
    const json = JSON.parse(body) as { error?: { message?: unknown } | string; detail?: unknown; message?: unknown }
    const error = typeof json.error === 'object' ? json.error?.message : json.error
    const message = error ?? json.message ?? json.detail
    if (typeof message === 'string') return message.slice(0, 500)
    if (message !== undefined) return JSON.stringify(message).slice(0, 500)
  } catch {}
  return body.trim().slice(0, 200)
}

/** Converts a FailedResponse to a typed error. */
export function toServerError({ server, status, body, retryAfter }: FailedResponse): TrainError {
  const serverMessage = messageOf(body)
  const seconds = Number(retryAfter ?? Number.NaN)
  const details = { server, status, ...(Number.isFinite(seconds) && { retryAfterSeconds: seconds }) }
  const says = serverMessage === '' ? 'without a word' : `with "${serverMessage}"`
  if (status === 400 && overflow.test(serverMessage))
    return new TrainError('POLICY_CONTEXT_OVERFLOW', `${server} refused a prompt that leaves no room in its context ${says}.`, {
      details: { ...details, stopReason: 'context-overflow' },
    })
  if (status === 429) return new TrainError('POLICY_RATE_LIMITED', `${server} takes no more calls: it answered 429 ${says}.`, { details })
  if (status === 401 || status === 403)
    return new TrainError(
      'CONFIG_INVALID',
      `${server} refused the call: ${status} ${says}; check its key and the flags it was started with.`,
      {
        details,
      },
    )
  if (status === 404 && serverMessage === unknownRoute)
    return new TrainError(
      'CONFIG_INVALID',
      `${server} does not serve this route: 404 ${says}; check that its URL ends before /v1, its version, and the flags it was started with, such as --enable-scale-out of vLLM.`,
      { details },
    )
  if (status === 404)
    return new TrainError('CONFIG_INVALID', `${server} does not know the model or the route: 404 ${says}; check its name and version.`, {
      details,
    })
  if (status >= 400 && status < 500 && status !== 408)
    return new TrainError('GATEWAY_BAD_REQUEST', `${server} refused the call: ${status} ${says}.`, { details })
  return new TrainError('POLICY_UNAVAILABLE', `${server} failed: it answered ${status} ${says}.`, { details })
}

/** Converts an error that a server wrote into an answer after its status 200. */
export function toStreamError(server: string, error: unknown): TrainError {
  const { message, code } = (typeof error === 'object' && error !== null ? error : { message: error }) as Record<string, unknown>
  const status = typeof code === 'number' ? code : 500
  const body = JSON.stringify({ error: { message: typeof message === 'string' ? message : JSON.stringify(error) } })
  return toServerError({ server, status, body, retryAfter: null })
}

export function invalidAnswer(server: string, problem: string, cause?: unknown): TrainError {
  return new TrainError('POLICY_RESPONSE_INVALID', `${server} ${problem}; check its version and the flags it was started with.`, {
    cause,
    details: { server },
  })
}

/** Parses the JSON object in a server's answer. Throws POLICY_RESPONSE_INVALID. */
export function parseAnswer<T extends object>(server: string, text: string): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw invalidAnswer(server, `answered what is not JSON: "${text.slice(0, 80)}"`, cause)
  }
  if (typeof value === 'object' && value !== null) return value as T
  throw invalidAnswer(server, `answered ${text.slice(0, 80)} in place of an object`)
}
