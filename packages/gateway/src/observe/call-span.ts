import type { IncomingHttpHeaders } from 'node:http'
import type { TraceHeaders, TrainError, Turn } from '@aworld-train/core'
import {
  type Context,
  type Link,
  ProxyTracerProvider,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { toSpanContext } from './trace-headers.ts'

/** The caller of a call, for its span. */
export interface CallIdentity {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
  /** Id of the invocation. */
  readonly trajectory: string
  readonly dialect: string
  readonly requestId: string
  /** Headers of the span that the session names. */
  readonly trace: TraceHeaders | undefined
}

const scope = '@aworld-train/gateway'

/** Whether no provider of spans is registered, as in most runs. Attributes then need not be gathered. */
function nobodyListens(): boolean {
  const provider = trace.getTracerProvider()
  return provider instanceof ProxyTracerProvider && provider.getDelegateTracer(scope) === undefined
}

/**
 * Starts the span of a model call by the semantic conventions for generative AI (opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans).
 * It is in the trace of the session, or else of the client; `null` if nobody records spans. It holds neither messages nor capabilities.
 */
export function startCallSpan(
  model: string,
  { rollout, attempt, agent, trajectory, dialect, requestId, trace: ofSession }: CallIdentity,
  headers: IncomingHttpHeaders,
): Span | null {
  if (nobodyListens()) return null
  const { parent, links } = placeOf(ofSession, headers)
  const span = trace.getTracer(scope).startSpan(
    `chat ${model}`,
    {
      kind: SpanKind.CLIENT,
      links,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'aworld-train',
        'gen_ai.request.model': model,
        'gen_ai.response.model': model,
        'gen_ai.agent.name': agent,
        'gen_ai.agent.id': trajectory,
        'gen_ai.conversation.id': rollout,
        'aworld_train.rollout': rollout,
        'aworld_train.attempt': attempt,
        'aworld_train.agent': agent,
        'aworld_train.dialect': dialect,
        'aworld_train.request_id': requestId,
      },
    },
    parent,
  )
  return span.isRecording() ? span : null
}

interface SpanPlace {
  readonly parent: Context
  readonly links: Link[]
}

/** Places the span below the client's span. If the client's span is of another trace than the session's, it is linked instead. */
function placeOf(ofSession: TraceHeaders | undefined, headers: IncomingHttpHeaders): SpanPlace {
  const parent = propagation.extract(ROOT_CONTEXT, headers)
  const client = trace.getSpanContext(parent)
  const session = ofSession && toSpanContext(ofSession)
  if (!session || client?.traceId === session.traceId) return { parent, links: [] }
  return { parent: trace.setSpanContext(ROOT_CONTEXT, session), links: client ? [{ context: client }] : [] }
}

export function setTurn(span: Span, { sampling, usage, finishReason, parent, index, weightVersions, responseModel }: Turn): void {
  span.setAttributes({
    'gen_ai.request.temperature': sampling.temperature,
    'gen_ai.request.top_p': sampling.topP,
    'gen_ai.request.top_k': sampling.topK,
    'gen_ai.request.max_tokens': sampling.maxTokens,
    'gen_ai.request.seed': sampling.seed,
    'gen_ai.response.finish_reasons': [finishReason.unified],
    ...(responseModel !== undefined && { 'gen_ai.response.model': responseModel }),
    'gen_ai.usage.input_tokens': usage.promptTokens,
    'gen_ai.usage.output_tokens': usage.completionTokens,
    ...(usage.cachedTokens > 0 && { 'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens }),
    'aworld_train.turn': index,
    'aworld_train.continued': parent !== null,
    'aworld_train.weight_version': weightVersions.at(-1)?.version ?? 0,
  })
}

export function endSpan(span: Span, failure: TrainError | string | null): void {
  if (failure !== null) {
    const [type, message] = typeof failure === 'string' ? [failure, failure] : [failure.code, failure.message]
    span.setAttribute('error.type', type)
    span.setStatus({ code: SpanStatusCode.ERROR, message })
  }
  span.end()
}
