import type { IncomingHttpHeaders } from 'node:http'
import type { ErrorCode, TrainError, Turn } from '@aworld-train/protocol'
import type { Span } from '@opentelemetry/api'
import type { Loss } from '../active-call.ts'
import { type CallCell, type CallMetrics, countEnd, createCallMetrics } from './call-metrics.ts'
import { type CallIdentity, endSpan, setTurn, startCallSpan } from './call-span.ts'

/** What a call tells of itself on its way; each step at most once, in this order, those that it does not reach left out. */
export interface CallObservation {
  /** Which of the gateway's models serves it: a name of the configuration, never of a request. */
  routed(model: string): void
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

export function createObserver(): Observer {
  const calls = createCallMetrics()

  return {
    calls,
    begin(identity, headers) {
      const startedAt = performance.now()
      let cell: CallCell | null = null
      let span: Span | null = null
      let first = true
      let duration: number | null = null
      return {
        routed(model) {
          cell = calls.cell(model, identity.dialect)
          span = startCallSpan(model, identity, headers)
        },
        admitted() {
          cell?.queue.observe(seconds(startedAt))
        },
        firstToken() {
          if (!first) return
          first = false
          cell?.firstToken.observe(seconds(startedAt))
        },
        answered() {
          duration = seconds(startedAt)
        },
        recorded(turn) {
          if (!cell) return
          const { tokens } = cell
          const { promptTokens, completionTokens, cachedTokens } = turn.usage
          if (turn.capture.tokens === 'none') {
            tokens.frozenPrompt += promptTokens
            tokens.frozenCompletion += completionTokens
          } else {
            tokens.prompt += promptTokens
            tokens.sampled += turn.completionTokenIds.length
          }
          tokens.cached += cachedTokens
          cell.cost += turn.cost ?? 0
          if (span) setTurn(span, turn)
        },
        ended(error, loss) {
          const own = cell ?? calls.cell(unrouted, identity.dialect)
          own.duration.observe(duration ?? seconds(startedAt))
          const code: ErrorCode | '' = error && loss === null ? error.code : ''
          countEnd(own, loss ?? (error ? 'failed' : 'ok'), code)
          if (span) endSpan(span, loss ?? error)
        },
      }
    },
  }
}
