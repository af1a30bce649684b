import { TrainError } from '@aworld-train/core'
import { propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { post, sessionRequest, startGateway, until } from '../testing/start-gateway.ts'

const messages = [{ role: 'user', content: 'A question nobody may read here.' }]
const exporter = new InMemorySpanExporter()

beforeEach(() => {
  exporter.reset()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
})

afterEach(() => {
  trace.disable()
  propagation.disable()
})

test('a call is a span by the GenAI conventions, in the trace of its client', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const endpoint = started.gateway.open(sessionRequest({ rollout: 'r-1', attempt: 2 })).endpoint('agent')
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = { 'content-type': 'application/json', traceparent: `00-${traceId}-b7ad6b7169203331-01` }
  await post(endpoint, { messages, max_tokens: 9 }, { headers })
  const [span] = exporter.getFinishedSpans()
  expect(span).toMatchObject({ name: 'chat tiny', kind: SpanKind.CLIENT, status: { code: SpanStatusCode.UNSET } })
  expect(span!.spanContext().traceId).toBe(traceId)
  expect(span!.parentSpanContext?.spanId).toBe('b7ad6b7169203331')
  expect(span!.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'tiny',
    'gen_ai.response.model': 'tiny',
    'gen_ai.agent.name': 'agent',
    'gen_ai.agent.id': 'agent',
    'gen_ai.conversation.id': 'r-1',
    'gen_ai.request.max_tokens': 9,
    'gen_ai.request.temperature': 1,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': started.engine.requests[0]!.promptTokenIds.length,
    'gen_ai.usage.output_tokens': started.engine.sampledTokens(),
    'aworld_train.rollout': 'r-1',
    'aworld_train.attempt': 2,
    'aworld_train.dialect': 'chat-completions',
    'aworld_train.request_id': expect.stringMatching(/^req_/),
    'aworld_train.continued': false,
  })
  const written = JSON.stringify([span!.attributes, span!.events, span!.name])
  expect(written).not.toContain(endpoint.apiKey)
  expect(written).not.toContain('nobody may read')
})

test('a call of a session is in its trace: below the span of its client where that is of the same trace, and linked to it where it is not', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const [rollout, other] = ['0af7651916cd43dd8448eb211c80319c', '4bf92f3577b34da6a3ce929d0e0e4736']
  const traceHeaders = { traceparent: `00-${rollout}-00f067aa0ba902b7-01` }
  const endpoint = started.gateway.open({ ...sessionRequest(), traceHeaders }).endpoint('agent')
  const clients = [{}, { traceparent: `00-${rollout}-b7ad6b7169203331-01` }, { traceparent: `00-${other}-b7ad6b7169203331-01` }]
  for (const headers of clients) await post(endpoint, { messages }, { headers: { 'content-type': 'application/json', ...headers } })
  const spans = exporter.getFinishedSpans()
  expect(spans.map((span) => [span.spanContext().traceId, span.parentSpanContext?.spanId])).toEqual([
    [rollout, '00f067aa0ba902b7'],
    [rollout, 'b7ad6b7169203331'],
    [rollout, '00f067aa0ba902b7'],
  ])
  expect(spans.map(({ links }) => links.map((link) => [link.context.traceId, link.context.spanId]))).toEqual([
    [],
    [],
    [[other, 'b7ad6b7169203331']],
  ])
})

test('a failed call and one that its client left say so', async () => {
  const down = new TrainError('POLICY_UNAVAILABLE', 'The engine is down.')
  await using started = await startGateway({
    say: (_, call) => {
      if (call === 0) throw down
      return { text: 'a long answer', pieceDelayMs: 5 }
    },
  })
  const endpoint = started.gateway.open(sessionRequest()).endpoint('agent')
  await post(endpoint, { messages })
  const leaving = new AbortController()
  const call = post(endpoint, { messages }, { signal: leaving.signal }).catch(() => {})
  await until(() => started.engine.sampledTokens() > 0)
  leaving.abort()
  await call
  await until(() => exporter.getFinishedSpans().length === 2)
  const [failed, left] = exporter.getFinishedSpans()
  expect(failed).toMatchObject({
    status: { code: SpanStatusCode.ERROR, message: 'The engine is down.' },
    attributes: { 'error.type': 'POLICY_UNAVAILABLE' },
  })
  expect(left).toMatchObject({
    status: { code: SpanStatusCode.ERROR },
    attributes: { 'error.type': 'client-closed', 'gen_ai.response.finish_reasons': ['aborted'] },
  })
})

test('without a provider no span is made', async () => {
  trace.disable()
  await using started = await startGateway({ say: () => 'Fine.' })
  expect((await post(started.gateway.open(sessionRequest()).endpoint('agent'), { messages })).status).toBe(200)
  expect(exporter.getFinishedSpans()).toEqual([])
})
