import type { IncomingHttpHeaders } from 'node:http'
import type { TraceHeaders } from '@aworld-train/core'
import type { TrainError, Turn } from '@aworld-train/protocol'
import type { Span } from '@opentelemetry/api'
import type { Loss } from '../active-call.ts'
import { type CallCell, type CallMetrics, countEnd, createCallMetrics } from './call-metrics.ts'
import { type CallIdentity, endSpan, setTurn, startCallSpan } from './call-span.ts'
import { traceHeadersOf } from './trace-headers.ts'

/** What a call tells of itself on its way; each step at most once, in this order, those that it does not reach left out. */
export interface CallObservation {
  /** Which of the gateway's models serves it: a name of the configuration, never of a request. */
  routed(model: string): void
  /** For the engine, once it is routed: its span, or the client's, is the parent of what the engine does. */
  traceHeaders(): TraceHeaders | undefined
  /** It has passed the gate. */
  admitted(): void
  /** Its first token, or its first byte where bytes pass through. Later calls have no effect. */
  firstToken(): void
  /** Its answer has left; what follows is the record alone. */
  answered(): void
  recorded(turn: Turn): void
  ended(error: TrainError | null, loss: Loss | null): void
}

export interface Observer {
  readonly calls: CallMetrics
  begin(identity: CallIdentity, headers: IncomingHttpHeaders): CallObservation
}

const seconds = (fromMs: number) => (performance.now() - fromMs) / 1_000

/** The model of a call that did not get as far as to one. */
const unrouted = 'none'

class Observation implements CallObservation {
  readonly #calls: CallMetrics
  readonly #identity: CallIdentity
  readonly #headers: IncomingHttpHeaders
  readonly #startedAt = performance.now()
  #cell: CallCell | null = null
  #span: Span | null = null
  #first = true
  #duration: number | null = null

  constructor(calls: CallMetrics, identity: CallIdentity, headers: IncomingHttpHeaders) {
    this.#calls = calls
    this.#identity = identity
    this.#headers = headers
  }

  routed(model: string): void {
    this.#cell = this.#calls.cell(model, this.#identity.dialect)
    this.#span = startCallSpan(model, this.#identity, this.#headers)
  }

  traceHeaders(): TraceHeaders | undefined {
    return traceHeadersOf(this.#span, this.#headers)
  }

  admitted(): void {
    this.#cell?.queue.observe(seconds(this.#startedAt))
  }

  firstToken(): void {
    if (!this.#first) return
    this.#first = false
    this.#cell?.firstToken.observe(seconds(this.#startedAt))
  }

  answered(): void {
    this.#duration = seconds(this.#startedAt)
  }

  recorded(turn: Turn): void {
    if (!this.#cell) return
    const { tokens } = this.#cell
    const { promptTokens, completionTokens, cachedTokens } = turn.usage
    if (turn.capture.tokens === 'none') {
      tokens.frozenPrompt += promptTokens
      tokens.frozenCompletion += completionTokens
    } else {
      tokens.prompt += promptTokens
      tokens.sampled += turn.completionTokenIds.length
    }
    tokens.cached += cachedTokens
    this.#cell.cost += turn.cost ?? 0
    if (this.#span) setTurn(this.#span, turn)
  }

  ended(error: TrainError | null, loss: Loss | null): void {
    const cell = this.#cell ?? this.#calls.cell(unrouted, this.#identity.dialect)
    cell.duration.observe(this.#duration ?? seconds(this.#startedAt))
    countEnd(cell, loss ?? (error ? 'failed' : 'ok'), error && loss === null ? error.code : '')
    if (this.#span) endSpan(this.#span, loss ?? error)
  }
}

export function createObserver(): Observer {
  const calls = createCallMetrics()
  return { calls, begin: (identity, headers) => new Observation(calls, identity, headers) }
}
