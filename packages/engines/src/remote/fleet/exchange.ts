import { TrainError } from '@aworld-train/core'
import { type Dispatcher, errors } from 'undici'
import type { Connections } from '../http/connections.ts'

export interface ExchangeRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
  /** Whether the request gets a new connection. */
  readonly fresh: boolean
}

export interface ExchangeHandler {
  onHead(head: { readonly status: number; readonly contentType: string; readonly retryAfter: string | null }): void
  /** Returns `false` to make the server wait until `resume` is called. */
  onData(chunk: Buffer, resume: () => void): boolean
}

export type ExchangeEnd =
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly status: number; readonly body: string; readonly retryAfter: string | null }
  | {
      readonly kind: 'failed'
      readonly stage: 'connect' | 'sent' | 'answered'
      readonly reused: boolean
      readonly afterMs: number
      readonly cause: Error
    }

const maxRefusalBytes = 64 * 1024

const headerOf = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value)

/**
 * Makes one request. A 2xx answer goes to the handler as it arrives; one with another status is read whole, up to 64 KiB. Rejects only with
 * the signal's reason; then the connection is closed, which makes a server stop generating, and the handler is not called again.
 */
export function exchange(
  connections: Connections,
  { path, headers, body, fresh }: ExchangeRequest,
  handler: ExchangeHandler,
  signal: AbortSignal,
): Promise<ExchangeEnd> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    let controller: Dispatcher.DispatchController | null = null
    let startedAt: number | null = null
    let answered = false
    let refusal: { status: number; retryAfter: string | null; chunks: Buffer[]; bytes: number } | null = null
    const settle = (end: ExchangeEnd): void => {
      signal.removeEventListener('abort', abort)
      resolve(end)
    }
    const abort = (): void => {
      reject(signal.reason)
      controller?.abort(new Error('aborted', { cause: signal.reason }))
    }
    signal.addEventListener('abort', abort, { once: true })

    connections.dispatch(
      { method: 'POST', path, headers, body },
      {
        onRequestStart(started) {
          if (signal.aborted) return started.abort(new Error('aborted before it was sent'))
          controller = started
          startedAt = performance.now()
        },
        onResponseStart(_controller, status, answerHeaders) {
          if (status < 200) return
          answered = true
          const retryAfter = headerOf(answerHeaders['retry-after']) ?? null
          if (status >= 300) refusal = { status, retryAfter, chunks: [], bytes: 0 }
          else handler.onHead({ status, contentType: headerOf(answerHeaders['content-type']) ?? '', retryAfter })
        },
        onResponseData(current, chunk) {
          if (refusal) {
            if (refusal.bytes < maxRefusalBytes) refusal.chunks.push(chunk)
            refusal.bytes += chunk.length
          } else if (!handler.onData(chunk, () => current.resume())) current.pause()
        },
        onResponseEnd() {
          if (!refusal) return settle({ kind: 'answered' })
          const { status, retryAfter, chunks } = refusal
          settle({ kind: 'refused', status, retryAfter, body: Buffer.concat(chunks).toString('utf8', 0, maxRefusalBytes) })
        },
        onResponseError(_controller, cause) {
          const { bytesRead = 0 } = (cause as { socket?: { bytesRead?: number } }).socket ?? {}
          settle({
            kind: 'failed',
            stage: answered ? 'answered' : startedAt === null ? 'connect' : 'sent',
            reused: bytesRead > 0,
            afterMs: startedAt === null ? 0 : performance.now() - startedAt,
            cause: cause instanceof errors.InvalidArgumentError ? unsendable(cause) : cause,
          })
        },
      },
      fresh,
    )
  })
}

const unsendable = (cause: Error) =>
  new TrainError('CONFIG_INVALID', `A request cannot be sent: ${cause.message}; mend the configuration of the server.`, { cause })
