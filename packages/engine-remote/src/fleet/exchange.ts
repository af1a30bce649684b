import type { Readable } from 'node:stream'
import type { Dispatcher, Pool } from 'undici'

export interface ExchangeRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: readonly Uint8Array[]
}

export interface ExchangeHandler {
  onHead(head: { readonly status: number; readonly contentType: string; readonly retryAfter: string | null }): void
  /** `false` asks the server to wait until `resume` is called. */
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
/** Larger bodies go out in the pieces they came in: a copy costs more than a write then. */
const copyUpTo = 16 * 1024

const headerOf = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value)

/**
 * One request and its answer. A 2xx goes to the handler as it comes; another status is read whole, up to 64 KiB. Rejects with
 * the signal's reason only, and then the connection is closed, which makes a server stop generating.
 */
export function exchange(
  pool: Pool,
  { path, headers, body }: ExchangeRequest,
  handler: ExchangeHandler,
  signal: AbortSignal,
): Promise<ExchangeEnd> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null
    let startedAt = 0
    let refusal: { status: number; retryAfter: string | null; chunks: Buffer[]; bytes: number } | null = null
    let answered = false
    const settle = (end: ExchangeEnd): void => {
      signal.removeEventListener('abort', abort)
      resolve(end)
    }
    const abort = (): void => {
      reject(signal.reason)
      controller?.abort(signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason }))
    }
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })

    const length = body.reduce((sum, piece) => sum + piece.length, 0)
    pool.dispatch(
      {
        path,
        method: 'POST',
        headers: { ...headers, 'content-length': `${length}` },
        // undici takes any iterable of bytes; its types know of streams alone.
        body: length > copyUpTo && body.length > 1 ? (body as unknown as Readable) : body.length === 1 ? body[0]! : Buffer.concat(body),
        headersTimeout: 0,
        bodyTimeout: 0,
      },
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
          if (signal.aborted) return
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
          signal.removeEventListener('abort', abort)
          const afterMs = startedAt === 0 ? 0 : performance.now() - startedAt
          const { bytesRead = 0 } = (cause as { socket?: { bytesRead?: number } }).socket ?? {}
          const stage = answered ? 'answered' : startedAt === 0 ? 'connect' : 'sent'
          settle({ kind: 'failed', stage, reused: bytesRead > 0, afterMs, cause })
        },
      },
    )
  })
}
