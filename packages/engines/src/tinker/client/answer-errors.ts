import { type ErrorCode, TrainError } from '@aworld-train/core'

/** An answer that is an error. */
export interface FailedAnswer {
  readonly url: string
  /** Purpose of the call, such as `forward_backward`. */
  readonly what: string
  readonly status: number
  readonly body: Buffer
}

/** The text of a FastAPI server for an unknown path. For an unknown handle its text is longer. */
const unknownRoute = 'Not Found'

/** The server's own words: `detail` or `error` of its JSON, else the beginning of the body. */
export function messageOf(body: Buffer): string {
  const text = body.toString('utf8')
  try {
    const { detail, error, message } = JSON.parse(text) as Record<string, unknown>
    const found = detail ?? error ?? message
    if (found !== undefined) return (typeof found === 'string' ? found : JSON.stringify(found)).slice(0, 500)
  } catch {}
  return text.trim().slice(0, 200)
}

/** The typed error of an answer by its status. */
export function toAnswerError({ url, what, status, body }: FailedAnswer): TrainError {
  const message = messageOf(body)
  const error = (code: ErrorCode, text: string) =>
    new TrainError(code, `${url} ${text} (${what}: ${status}${message ? ` "${message}"` : ''}).`, {
      details: { server: url, what, status },
    })
  if (status === 401 || status === 403) return error('CONFIG_INVALID', 'refused the key; set TINKER_API_KEY to one of this service')
  if (status === 415)
    return error(
      'CONFIG_INVALID',
      'does not take protocol buffers; use a server of the Tinker protocol as of its SDK 0.25, such as SkyRL 0.4',
    )
  if ((status === 404 && message === unknownRoute) || status === 405)
    return error('CONFIG_INVALID', 'does not serve the Tinker protocol; correct the address of the service')
  if (status === 404 || status === 410)
    return error(
      'POLICY_WORKER_DIED',
      'no longer has what the call names; run the same command again, which resumes from the last checkpoint',
    )
  if (status === 429) return error('POLICY_RATE_LIMITED', 'takes no more calls; lower the concurrency, or wait for others to end')
  if (status >= 500) return error('POLICY_UNAVAILABLE', 'failed; read its log')
  return refusal({ url, what, message })
}

/** The error of a request that the server accepted but could not carry out, in the server's words. */
export function refusal({ url, what, message }: { readonly url: string; readonly what: string; readonly message: string }): TrainError {
  const error = (code: ErrorCode, advice: string) =>
    new TrainError(code, `${url} could not do ${what}: "${message}"; ${advice}.`, { details: { server: url, what } })
  if (/maximum number of lora adapters|at capacity|no capacity/i.test(message))
    return error('POLICY_RATE_LIMITED', 'wait until another training has ended, or raise the number of adapters of the server')
  if (/lora rank|lora_rank/i.test(message)) return error('CONFIG_INVALID', 'choose a rank that the server takes')
  if (/not found|not loaded|expired|does not exist/i.test(message))
    return error('POLICY_WORKER_DIED', 'run the same command again, which resumes from the last checkpoint')
  return error('POLICY_FAILED', 'correct what it names')
}
