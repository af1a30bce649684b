import { setTimeout as sleep } from 'node:timers/promises'
import { retryAfterMs } from '@aworld-train/core'

/** When the requests of one client are sent again: a row of `retryRules`. */
export interface RetryRule {
  /** Whether a request with this status is sent again. */
  readonly statuses: (status: number) => boolean
  /** Codes of errors after which a request is sent again; `any` if every request may take effect twice. */
  readonly errors: ReadonlySet<string> | 'any'
  /** Most repetitions, unless the caller names a number. */
  readonly retries: number
  /** Least repetitions if there was no connection, whatever number the caller names. */
  readonly connectRetries?: number | undefined
  /** The pause before the first repetition. */
  readonly firstMs: number
  /** How much longer each pause is than the one before it. */
  readonly factor: number
  /** The longest pause. */
  readonly longestMs: number
  /**
   * `heeded`: the server's `Retry-After` is the pause. `required`: a status without that header is final. `final`: a status with it is final,
   * because a `LoadGate` waits.
   */
  readonly retryAfter: 'ignored' | 'heeded' | 'required' | 'final'
  /** What follows if the server asks for a longer pause than the longest: that one, or no repetition. */
  readonly beyond: 'longest' | 'final'
}

/** An answer, as far as it says whether its request is sent again. */
export interface Answered {
  readonly status: number
  /** The header `Retry-After`. */
  readonly retryAfter?: string | null | undefined
}

/** Codes of errors in which there was no connection, so that nothing was sent. */
const unsent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

const codeOf = (error: unknown) => String((error as { readonly code?: unknown } | null)?.code ?? '')

/** Whether no byte of the request was sent. */
export const isUnsent = (error: unknown): boolean => unsent.has(codeOf(error))

const oneOf =
  (...statuses: readonly number[]) =>
  (status: number) =>
    statuses.includes(status)
const none = () => false
const failed = (status: number) => status >= 500

const doubling = { factor: 2, longestMs: Number.POSITIVE_INFINITY, retryAfter: 'ignored', beyond: 'longest' } as const

/** Every client of HTTP, by whom it asks, and when it repeats a request. */
export const retryRules = {
  /** Pages and services that tools ask. A request whose answer is lost is not repeated: a service may have counted or done it. */
  outward: {
    statuses: oneOf(429, 502, 503, 504),
    errors: unsent,
    retries: 2,
    firstMs: 200,
    factor: 3,
    longestMs: 60_000,
    retryAfter: 'heeded',
    beyond: 'final',
  },
  /**
   * Models of third parties. Each answer costs money, so a call is repeated only if it was refused or not sent. Those that are refused for
   * load wait at a `LoadGate`.
   */
  thirdParty: {
    statuses: oneOf(502, 503, 504),
    errors: unsent,
    retries: 2,
    connectRetries: 1,
    firstMs: 500,
    factor: 2,
    longestMs: 60_000,
    retryAfter: 'final',
    beyond: 'longest',
  },
  /** An agent's model. Statuses are left to the SDK, because the gateway may have sampled. */
  agentModel: { ...doubling, statuses: none, errors: unsent, retries: 2, firstMs: 100 },
  /**
   * Servers that sample the policy. The tokens of a call must not be sampled twice, so it is repeated at once, on another connection, and
   * only if the server has not begun it. The fleet knows that of connections, and its `mayRetry` may say no.
   */
  sampling: { ...doubling, statuses: oneOf(502, 503, 504), errors: unsent, retries: 2, firstMs: 0 },
  /** Control of those servers. Only callers whose request may take effect twice name a number of repetitions. */
  serverControl: { ...doubling, statuses: failed, errors: 'any', retries: 0, firstMs: 100 },
  /** A service that samples and trains. It recognises a repeated request; callers name the time for which they are patient. */
  trainingService: {
    ...doubling,
    statuses: (status: number) => status === 429 || failed(status),
    errors: 'any',
    retries: Number.POSITIVE_INFINITY,
    firstMs: 250,
    longestMs: 8_000,
  },
  /** Environment servers. A tool may act, so a request is repeated only if the server says that it has not begun it. */
  environment: {
    statuses: oneOf(429, 503),
    errors: new Set<string>(),
    retries: Number.POSITIVE_INFINITY,
    firstMs: 100,
    factor: 1,
    longestMs: Number.POSITIVE_INFINITY,
    retryAfter: 'required',
    beyond: 'longest',
  },
  /** The rollout service. A rollout is submitted under a key, so that a repeated request has no second effect. */
  rolloutService: {
    ...doubling,
    statuses: oneOf(503),
    errors: new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT']),
    retries: 6,
    firstMs: 100,
  },
} as const satisfies Readonly<Record<string, RetryRule>>

/** The outcome of sending once. */
export type Sent<Answer extends Answered> = { readonly answer: Answer } | { readonly error: unknown }

/** Milliseconds until the request is sent again after `tried` repetitions; `null` if it is not. */
export function retryPauseMs(rule: RetryRule, sent: Sent<Answered>, tried: number, retries = rule.retries): number | null {
  const { errors, firstMs, factor, longestMs } = rule
  const backoffMs = Math.min(firstMs * factor ** tried, longestMs)
  if ('error' in sent) {
    const most = isUnsent(sent.error) ? Math.max(retries, rule.connectRetries ?? 0) : retries
    return tried < most && (errors === 'any' || errors.has(codeOf(sent.error))) ? backoffMs : null
  }
  const { status, retryAfter = null } = sent.answer
  if (tried >= retries || !rule.statuses(status)) return null
  const askedMs = rule.retryAfter === 'ignored' ? null : retryAfterMs(retryAfter)
  if (rule.retryAfter === 'final') return askedMs === null ? backoffMs : null
  if (askedMs === null) return rule.retryAfter === 'required' ? null : backoffMs
  if (askedMs > longestMs && rule.beyond === 'final') return null
  // A server that asks for no pause, such as by a date that our clock has passed, is not asked again at once.
  return rule.retryAfter === 'required' ? Math.max(askedMs, firstMs) : Math.min(askedMs || backoffMs, longestMs)
}

export interface RetryOptions<Answer> {
  readonly signal?: AbortSignal | null | undefined
  /** Most repetitions, in place of the rule's. */
  readonly retries?: number | undefined
  /** Milliseconds from the first request, after which none is begun. */
  readonly patienceMs?: number | undefined
  /** Frees an answer after which the request is sent again. */
  readonly discard?: ((answer: Answer) => Promise<void> | undefined) | undefined
}

/**
 * Sends a request as often as its rule allows. Resolves to the last answer, whatever its status, and rejects with the last error or with the
 * signal's reason.
 */
export async function sendWithRetries<Answer extends Answered>(
  rule: RetryRule,
  send: () => Promise<Answer>,
  { signal, retries, patienceMs = Number.POSITIVE_INFINITY, discard }: RetryOptions<Answer> = {},
): Promise<Answer> {
  const end = performance.now() + patienceMs
  for (let tried = 0; ; tried++) {
    const sent: Sent<Answer> = await send().then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    )
    if ('error' in sent) signal?.throwIfAborted()
    const pauseMs = retryPauseMs(rule, sent, tried, retries)
    if (pauseMs === null || performance.now() + pauseMs > end) {
      if ('error' in sent) throw sent.error
      return sent.answer
    }
    if ('answer' in sent) await discard?.(sent.answer)
    await sleep(pauseMs, undefined, signal ? { signal } : {}).catch((error: unknown) => {
      throw signal?.aborted ? signal.reason : error
    })
  }
}
