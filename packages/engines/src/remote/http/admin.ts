import { errorMessage, TrainError } from '@aworld-train/core'
import { retryRules, sendWithRetries } from '@aworld-train/http'
import { Pool } from 'undici'
import { messageOf, toServerError } from './server-error.ts'

export interface AdminAnswer {
  readonly status: number
  readonly text: string
  /** The parsed text; `undefined` if it is not JSON. */
  readonly json: unknown
}

export interface AdminCall {
  readonly method?: 'GET' | 'POST' | undefined
  readonly body?: unknown
  readonly timeoutMs?: number | undefined
  /** Whether the call is repeated after a failure that leaves its outcome open; only for calls that may take effect twice. */
  readonly attempts?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Control calls to a server, on sockets of their own, so that traffic on the others does not delay them. */
export interface Admin {
  readonly server: string
  /** Rejects with POLICY_UNAVAILABLE without an answer. Any status is an answer. */
  call(path: string, call?: AdminCall): Promise<AdminAnswer>
  /** Like `call`, but rejects with a typed error if the status is not 2xx. */
  expect(path: string, call?: AdminCall): Promise<AdminAnswer>
  close(): Promise<void>
}

export interface ServerAdminOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connectTimeoutMs: number
  readonly keepAliveMs: number
}

export function createAdmin({ url, headers, connectTimeoutMs, keepAliveMs }: ServerAdminOptions): Admin {
  const { origin, pathname } = new URL(url)
  const base = pathname.replace(/\/+$/, '')
  const pool = new Pool(origin, {
    connections: 4,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    connect: { timeout: connectTimeoutMs },
  })

  async function once(path: string, { method = 'POST', body, timeoutMs = 30_000, signal }: AdminCall): Promise<AdminAnswer> {
    const deadline = AbortSignal.timeout(timeoutMs)
    const answer = await pool.request({
      path: base + path,
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    })
    const text = await answer.body.text()
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch {}
    return { status: answer.statusCode, text, json }
  }

  async function call(path: string, options: AdminCall = {}): Promise<AdminAnswer> {
    const { attempts = 1, signal } = options
    const rule = retryRules.serverControl
    return await sendWithRetries(rule, () => once(path, options), { retries: attempts - 1, signal }).catch((cause: unknown) => {
      signal?.throwIfAborted()
      const message = `${url} did not answer ${path}: ${errorMessage(cause)}; check that the server runs.`
      throw new TrainError('POLICY_UNAVAILABLE', message, { cause, details: { server: url, path } })
    })
  }

  return {
    server: url,
    call,
    async expect(path, options) {
      const { status, text, json } = await call(path, options)
      if (status < 200 || status >= 300) {
        const { code, message, details } = toServerError({ server: url, status, body: text, retryAfter: null })
        throw new TrainError(code, `${path}: ${message}`, { details: { ...details, path, said: messageOf(text) } })
      }
      return { status, text, json }
    },
    close: () => pool.destroy(),
  }
}
