import type { CallHandler } from '../http1/connection.ts'
import type { ConnectionPool, PoolCall, PoolRequest } from '../http1/connection-pool.ts'
import type { ResponseHead } from '../http1/response-head.ts'

export interface ExchangeHandler {
  onHead(head: ResponseHead): void
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

/** What an exchange ends with that was aborted. */
export interface Aborted {
  readonly kind: 'aborted'
  readonly reason: unknown
}

const maxRefusalBytes = 64 * 1024
const answered: ExchangeEnd = { kind: 'answered' }

interface Refusal {
  readonly status: number
  readonly retryAfter: string | null
  readonly chunks: Buffer[]
  bytes: number
}

/**
 * One request and its answer. A 2xx goes to the handler as it comes; another status is read whole, up to 64 KiB. Once it is
 * aborted the connection is closed, which makes a server stop generating, and nothing more is heard.
 */
export class Exchange implements CallHandler {
  readonly #handler: ExchangeHandler
  #ended: ((end: ExchangeEnd | Aborted) => void) | null
  #call: PoolCall | null = null
  #startedAt = 0
  #refusal: Refusal | null = null
  #answered = false
  #resume: (() => void) | null = null

  constructor(handler: ExchangeHandler, ended: (end: ExchangeEnd | Aborted) => void) {
    this.#handler = handler
    this.#ended = ended
  }

  send(pool: ConnectionPool, request: PoolRequest): void {
    this.#call = pool.post(request, this)
  }

  abort(reason: unknown): void {
    if (!this.#ended) return
    this.#end({ kind: 'aborted', reason })
    this.#call?.abort()
  }

  #end(end: ExchangeEnd | Aborted): void {
    const ended = this.#ended
    this.#ended = null
    ended?.(end)
  }

  onStart(): void {
    this.#startedAt = performance.now()
  }

  onHead(head: ResponseHead): void {
    this.#answered = true
    const { status, retryAfter } = head
    if (status >= 300) this.#refusal = { status, retryAfter, chunks: [], bytes: 0 }
    else this.#handler.onHead(head)
  }

  onData(chunk: Buffer): boolean {
    const refusal = this.#refusal
    if (refusal) {
      if (refusal.bytes < maxRefusalBytes) refusal.chunks.push(chunk)
      refusal.bytes += chunk.length
      return true
    }
    this.#resume ??= () => {
      // The connection may serve somebody else by now.
      if (this.#ended) this.#call?.resume()
    }
    return this.#handler.onData(chunk, this.#resume)
  }

  onEnd(): void {
    if (!this.#refusal) {
      this.#end(answered)
      return
    }
    const { status, retryAfter, chunks } = this.#refusal
    this.#end({ kind: 'refused', status, retryAfter, body: Buffer.concat(chunks).toString('utf8', 0, maxRefusalBytes) })
  }

  onError(cause: Error, reused: boolean): void {
    const startedAt = this.#startedAt
    const afterMs = startedAt === 0 ? 0 : performance.now() - startedAt
    const stage = this.#answered ? 'answered' : startedAt === 0 ? 'connect' : 'sent'
    this.#end({ kind: 'failed', stage, reused, afterMs, cause })
  }
}

/** Rejects with the signal's reason only. */
export function exchange(pool: ConnectionPool, request: PoolRequest, handler: ExchangeHandler, signal: AbortSignal): Promise<ExchangeEnd> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const abort = () => started.abort(signal.reason)
    const started = new Exchange(handler, (end) => {
      signal.removeEventListener('abort', abort)
      if (end.kind === 'aborted') reject(end.reason)
      else resolve(end)
    })
    signal.addEventListener('abort', abort, { once: true })
    started.send(pool, request)
  })
}
