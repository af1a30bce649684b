import type { IncomingHttpHeaders } from 'node:http'
import type { TraceHeaders } from '@aworld-train/core'
import type { Span, SpanContext } from '@opentelemetry/api'

/** Version, trace, parent and flags (W3C Trace Context, section 3.2). Two header lines are joined by a comma, which makes them invalid. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestate = /^[\x20-\x7e]{1,512}$/

const withState = (parent: string, state: unknown): TraceHeaders =>
  typeof state === 'string' && tracestate.test(state) ? { traceparent: parent, tracestate: state } : { traceparent: parent }

/** Headers that make an engine's spans children of `span`, or of the client's span if that is absent; `undefined` outside of any trace. */
export function traceHeadersOf(span: Span | null, headers: IncomingHttpHeaders): TraceHeaders | undefined {
  if (span) {
    const { traceId, spanId, traceFlags, traceState } = span.spanContext()
    return withState(`00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`, traceState?.serialize())
  }
  const { traceparent: parent, tracestate: state } = headers
  return typeof parent === 'string' && traceparent.test(parent) ? withState(parent, state) : undefined
}

/** The span that the headers name; `null` if they name none. */
export function toSpanContext({ traceparent: parent = '' }: TraceHeaders): SpanContext | null {
  if (!traceparent.test(parent)) return null
  const [, traceId = '', spanId = '', flags = ''] = parent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}
