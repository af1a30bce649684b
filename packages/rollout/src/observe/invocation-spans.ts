import { type Span, trace } from '@opentelemetry/api'
import { endInvocationSpan, startInvocationSpan } from './rollout-spans.ts'

/** The spans of the invocations of one attempt. */
export class InvocationSpans {
  readonly #attempt: Span
  readonly #open = new Map<string, Span>()

  constructor(attempt: Span) {
    this.#attempt = attempt
  }

  /** Starts one below the span that is active in the attempt, such as that of the tool call that asks for it. */
  start(id: string, agent: string): void {
    const active = trace.getActiveSpan()
    const isInAttempt = active?.spanContext().traceId === this.#attempt.spanContext().traceId
    this.#open.set(id, startInvocationSpan(active && isInAttempt ? active : this.#attempt, { id, agent }))
  }

  /** The span for what an invocation does: its own, or that of the attempt if it has none. */
  of(id: string): Span {
    return this.#open.get(id) ?? this.#attempt
  }

  end(id: string, answered: boolean): void {
    const span = this.#open.get(id)
    if (span) endInvocationSpan(span, answered)
    this.#open.delete(id)
  }

  /** Ends those that still work. */
  close(): void {
    for (const id of [...this.#open.keys()]) this.end(id, false)
  }
}
