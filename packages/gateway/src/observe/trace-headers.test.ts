import { context, propagation, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterEach, expect, test } from 'vitest'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest, startGateway } from '../testing/start-gateway.ts'
import { traceHeadersOf } from './trace-headers.ts'

const messages = [{ role: 'user', content: 'Gold?' }]
const traceId = '0af7651916cd43dd8448eb211c80319c'
const parent = `00-${traceId}-b7ad6b7169203331-01`
const headers = { 'content-type': 'application/json', traceparent: parent, tracestate: 'vendor=x, other=y' }

afterEach(() => {
  trace.disable()
  propagation.disable()
  context.disable()
})

function recordSpans(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  return exporter
}

/** Headers that a token engine and a chat engine receive with a call that has `sent` for its headers. */
async function passedOn(sent: Record<string, string>) {
  await using tokens = await startGateway({ say: () => 'Fine.' })
  await post(tokens.gateway.open(sessionRequest()).endpoint('agent'), { messages }, { headers: sent })
  await using chat = await startChatGateway(() => 'Fine.')
  const session = chat.gateway.open(sessionRequest())
  await post(session.endpoint('agent'), { messages }, { headers: sent })
  await session.close()
  return { token: tokens.engine.requests[0]!.traceHeaders, chat: chat.server.calls[0]!.headers }
}

test("without spans an engine is told of the client's own", async () => {
  const { token, chat } = await passedOn(headers)
  expect(token).toEqual({ traceparent: parent, tracestate: headers.tracestate })
  expect(chat).toMatchObject({ traceparent: parent, tracestate: headers.tracestate })
  const without = await passedOn({ 'content-type': 'application/json' })
  expect(without.token).toBeUndefined()
  expect(without.chat).not.toHaveProperty('traceparent')
})

test('with spans, ours is the parent, in the trace of the client', async () => {
  const exporter = recordSpans()
  const { token, chat } = await passedOn(headers)
  await expect.poll(() => exporter.getFinishedSpans().length).toBe(2)
  const [first, second] = exporter.getFinishedSpans().map((span) => span.spanContext())
  for (const [sent, span] of [
    [token?.['traceparent'], first],
    [chat['traceparent'], second],
  ] as const) {
    expect(sent).toBe(`00-${traceId}-${span!.spanId}-01`)
    expect(span!.traceId).toBe(traceId)
  }
  expect(token?.['tracestate']).toBe('vendor=x,other=y')
})

test('with spans, a call without a trace begins one', async () => {
  const exporter = recordSpans()
  const { token } = await passedOn({ 'content-type': 'application/json' })
  const { traceId, spanId } = exporter.getFinishedSpans()[0]!.spanContext()
  expect(token).toEqual({ traceparent: `00-${traceId}-${spanId}-01` })
})

test.each([
  'nonsense',
  '',
  `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `ff-${traceId}-b7ad6b7169203331-01`,
  `${parent}, ${parent}`,
  parent.toUpperCase(),
  `${parent}\r\nx: y`,
])('a traceparent that is none goes no further: %j', (traceparent) => {
  expect(traceHeadersOf(null, { traceparent, tracestate: 'a=1' })).toBeUndefined()
})

test('a tracestate that no header may hold, or that is too long, is left out', () => {
  for (const tracestate of ['a=ü', 'a=1\r\nx: y', 'a'.repeat(513), ''])
    expect(traceHeadersOf(null, { traceparent: parent, tracestate })).toEqual({ traceparent: parent })
})
