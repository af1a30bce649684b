import { TrainError } from '@aworld-train/core'
import { badRequest } from '../failure.ts'

/** An answer of a server that is no completion. */
export interface ErrorAnswer {
  readonly status: number
  readonly text: string
  readonly retryAfter: string | null
}

/** Texts of vLLM, SGLang, TGI, llama.cpp, OpenAI, Anthropic and Gemini for a conversation that does not fit. */
const overflow =
  /context[ _](?:length|size)|prompt is too long|maximum number of tokens|maximum context|context window|max_model_len|maximum model length|too many (?:input )?tokens|longer than the model/i

/** The message of an error body in any of the usual shapes, else its beginning. */
export function errorText(text: string): string {
  try {
    const body = JSON.parse(text) as { error?: unknown; message?: unknown; detail?: unknown }
    const { error } = body
    const inner = typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : error
    for (const candidate of [inner, body.message, body.detail]) if (typeof candidate === 'string') return candidate.slice(0, 2000)
  } catch {
    // It is not JSON, so the text itself is the message.
  }
  return text.slice(0, 500).trim() || 'no text'
}

/** The error for a conversation that `server` refuses as too long for its context; `null` for another refusal. */
export function overflowOf(server: string, { status, text }: Pick<ErrorAnswer, 'status' | 'text'>): TrainError | null {
  const reason = errorText(text)
  if (status >= 500 || status === 429 || !overflow.test(reason)) return null
  const message = `The conversation does not fit the context of ${server}: ${reason}`
  return new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow', param: 'messages' } })
}

/** Turns an error answer of engine `name` into an error of the catalogue. */
export function engineFailure(name: string, { status, text, retryAfter }: ErrorAnswer): TrainError {
  const tooLong = overflowOf(`engine "${name}"`, { status, text })
  if (tooLong) return tooLong
  const engineMessage = errorText(text)
  if (status === 429) {
    const seconds = Number(retryAfter ?? Number.NaN)
    const details = Number.isFinite(seconds) ? { retryAfterSeconds: seconds } : {}
    return new TrainError('POLICY_RATE_LIMITED', `Engine "${name}" refused the call for load: ${engineMessage}`, { details })
  }
  if (status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 404) {
    return badRequest(`Engine "${name}" refused the request: ${engineMessage}`, null, status)
  }
  return new TrainError('POLICY_UNAVAILABLE', `Engine "${name}" answered ${status}: ${engineMessage}`)
}
