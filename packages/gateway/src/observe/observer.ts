import type { IncomingHttpHeaders } from 'node:http'
import type { TraceHeaders, TrainError, Turn } from '@aworld-train/core'
import type { Span } from '@opentelemetry/api'
import type { Registry } from 'prom-client'
import type { Loss } from '../active-call.ts'
import { type CallMetrics, createCallMetrics } from './call-metrics.ts'
import { type CallIdentity, endSpan, setTurn, startCallSpan } from './call-span.ts'
import { traceHeadersOf } from './trace-headers.ts'

/**
 * Observes the steps of a call. Each method is called at most once and in this order, unless it says otherwise; steps that the
 * call does not reach are left out.
 */
export interface CallObservation {
  /** The model that serves the call, under its name in the configuration, never that of a request. */
  routed(model: string): void
  /** Trace headers for the engine, once the call has a model. The call's span, or the client's, is the parent of the engine's. */
  traceHeaders(): TraceHeaders | undefined
  /** The call has passed the gate. */
  admitted(): void
  /** The first token has arrived, or the first byte if bytes pass through. Further calls have no effect. */
  firstToken(): void
  /** The answer has been sent; only the record is left to do. */
  answered(): void
  recorded(turn: Turn): void
  ended(error: TrainError | null, loss: Loss | null): void
}

export interface Observer {
  begin(identity: CallIdentity, headers: IncomingHttpHeaders): CallObservation
}

const seconds = (fromMs: number) => (performance.now() - fromMs) / 1_000

/** The model label of a call that ended before it had a model. */
const unrouted = 'none'

class Observation implements CallObservation {
  readonly #metrics: CallMetrics
  readonly #identity: CallIdentity
  readonly #headers: IncomingHttpHeaders
  readonly #startedAt = performance.now()
  #model: string | null = null
  #span: Span | null = null
  #first = true
  #duration: number | null = null

  constructor(metrics: CallMetrics, identity: CallIdentity, headers: IncomingHttpHeaders) {
    this.#metrics = metrics
    this.#identity = identity
    this.#headers = headers
  }

  routed(model: string): void {
    this.#model = model
    this.#span = startCallSpan(model, this.#identity, this.#headers)
  }

  traceHeaders(): TraceHeaders | undefined {
    return traceHeadersOf(this.#span, this.#headers)
  }

  admitted(): void {
    this.#metrics.queue.observe(this.#labels(), seconds(this.#startedAt))
  }

  firstToken(): void {
    if (!this.#first) return
    this.#first = false
    this.#metrics.firstToken.observe(this.#labels(), seconds(this.#startedAt))
  }

  answered(): void {
    this.#duration = seconds(this.#startedAt)
  }

  recorded(turn: Turn): void {
    const { tokens, cost } = this.#metrics
    const { promptTokens, completionTokens, cachedTokens } = turn.usage
    const isFrozen = turn.capture.tokens === 'none'
    for (const [kind, count] of Object.entries({
      prompt: isFrozen ? 0 : promptTokens,
      cached: cachedTokens,
      sampled: turn.completionTokenIds.length,
      'frozen-prompt': isFrozen ? promptTokens : 0,
      'frozen-completion': isFrozen ? completionTokens : 0,
    }))
      tokens.inc({ ...this.#labels(), kind }, count)
    cost.inc(this.#labels(), turn.cost ?? 0)
    if (this.#span) setTurn(this.#span, turn)
  }

  ended(error: TrainError | null, loss: Loss | null): void {
    this.#metrics.duration.observe(this.#labels(), this.#duration ?? seconds(this.#startedAt))
    const code = error && loss === null ? error.code : ''
    this.#metrics.calls.inc({ ...this.#labels(), outcome: loss ?? (error ? 'failed' : 'ok'), code })
    if (this.#span) endSpan(this.#span, loss ?? error)
  }

  #labels(): { readonly model: string; readonly dialect: string } {
    return { model: this.#model ?? unrouted, dialect: this.#identity.dialect }
  }
}

export function createObserver(registry: Registry): Observer {
  const metrics = createCallMetrics(registry)
  return { begin: (identity, headers) => new Observation(metrics, identity, headers) }
}
