import {
  type Episode,
  type ErrorRecord,
  type RewardOutput,
  type RolloutRequest,
  type StopReason,
  type TraceHeaders,
  type Trajectory,
  toTrainError,
} from '@aworld-train/core'
import { type Attributes, context, INVALID_SPAN_CONTEXT, isSpanContextValid, type Span, SpanStatusCode, trace } from '@opentelemetry/api'

// Each rollout is a trace. The rollout's span holds its attempts and the reward; an attempt's span holds its invocations, their tool calls
// and the gateway's model calls. An attempt of one agent has a span for the invocations that follow the first, which is the attempt. Attributes follow the semantic conventions for generative AI (github.com/open-telemetry/semantic-conventions-genai) and,
// where these have none, are our own. No span holds messages, arguments, results or answers.

const tracer = () => trace.getTracer('@aworld-train/rollout')

/** The span of a rollout, which is the root of its trace. */
export const startRolloutSpan = ({ key, task, group, sample, split }: RolloutRequest): Span =>
  tracer().startSpan('rollout', {
    root: true,
    attributes: {
      'gen_ai.conversation.id': key,
      'aworld_train.rollout': key,
      'aworld_train.task': task.id,
      'aworld_train.group': group,
      'aworld_train.sample': sample,
      'aworld_train.split': split,
    },
  })

export function endRolloutSpan(span: Span, episode: Episode | null, failure?: unknown): void {
  if (episode) {
    const { attempt, stopReason, reward, error } = episode
    span.setAttributes({
      'aworld_train.attempt': attempt,
      'aworld_train.stop_reason': stopReason,
      ...(reward !== null && { 'aworld_train.reward': reward }),
    })
    if (error) fail(span, error.code, error.message)
  } else failBy(span, failure)
  span.end()
}

export interface AttemptSpanOptions {
  readonly rollout: Span
  readonly key: string
  readonly attempt: number
  readonly agents: readonly { readonly name: string }[]
}

export function startAttemptSpan({ rollout, key, attempt, agents }: AttemptSpanOptions): Span {
  const names = agents.map(({ name }) => name).join(', ')
  const attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'aworld-train',
    'gen_ai.agent.name': names,
    ...(agents.length === 1 && { 'gen_ai.agent.id': names }),
    'gen_ai.conversation.id': key,
    'aworld_train.rollout': key,
    'aworld_train.attempt': attempt,
  }
  return startChild(rollout, `invoke_agent ${names}`, attributes)
}

export interface AttemptEnd {
  readonly trajectories: readonly Trajectory[]
  readonly toolCalls: readonly unknown[]
  readonly stopReason: StopReason
  readonly error: ErrorRecord | undefined
}

export function endAttemptSpan(span: Span, { trajectories, toolCalls, stopReason, error }: AttemptEnd): void {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns)
  span.setAttributes({
    'gen_ai.usage.input_tokens': turns.reduce((sum, { usage }) => sum + usage.promptTokens, 0),
    'gen_ai.usage.output_tokens': turns.reduce((sum, { usage }) => sum + usage.completionTokens, 0),
    'aworld_train.turns': turns.length,
    'aworld_train.tool_calls': toolCalls.length,
    'aworld_train.stop_reason': stopReason,
  })
  if (error) fail(span, error.code, error.message)
  span.end()
}

/** Starts the span of an invocation; `id` is that of its trajectory. */
export const startInvocationSpan = (parent: Span, { id, agent }: { readonly id: string; readonly agent: string }): Span =>
  startChild(parent, `invoke_agent ${agent}`, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'aworld-train',
    'gen_ai.agent.name': agent,
    'gen_ai.agent.id': id,
  })

export function endInvocationSpan(span: Span, answered: boolean): void {
  span.setAttribute('aworld_train.answered', answered)
  span.end()
}

export interface ToolSpanOptions {
  readonly agent: string
  /** Id of the invocation. */
  readonly trajectory: string
  /** The model's id for the call. */
  readonly id: string | undefined
  readonly name: string
}

/** Runs a tool call in a span. Spans that the tool starts are its children if the application keeps track of contexts. */
export async function inToolSpan<Result extends { readonly isError: boolean }>(
  parent: Span,
  { agent, trajectory, id, name }: ToolSpanOptions,
  run: () => Promise<Result>,
): Promise<Result> {
  const span = startChild(parent, `execute_tool ${name}`, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.agent.name': agent,
    'gen_ai.agent.id': trajectory,
    ...(id !== undefined && { 'gen_ai.tool.call.id': id }),
  })
  try {
    const result = await withSpan(span, run)
    if (result.isError) fail(span, 'tool_error')
    return result
  } catch (error) {
    failBy(span, error)
    throw error
  } finally {
    span.end()
  }
}

/** Runs a reward function in a span. */
export async function inRewardSpan(rollout: Span, name: string, score: () => Promise<RewardOutput>): Promise<RewardOutput> {
  const span = startChild(rollout, `reward ${name}`, { 'gen_ai.evaluation.name': name })
  try {
    const output = await withSpan(span, score)
    const scores = Object.entries(output.scores).map(([key, value]) => [`aworld_train.score.${key}`, value])
    span.setAttributes({ 'gen_ai.evaluation.score.value': output.reward, ...Object.fromEntries(scores) })
    return output
  } catch (error) {
    failBy(span, error)
    throw error
  } finally {
    span.end()
  }
}

/** Runs `work` with `span` as the active one. */
export const withSpan = <T>(span: Span, work: () => T): T => context.with(trace.setSpan(context.active(), span), work)

/** Headers that make spans of the gateway or of another process children of `span`; `undefined` where nobody records spans. */
export function traceHeadersOf(span: Span): TraceHeaders | undefined {
  const spanContext = span.spanContext()
  if (!isSpanContextValid(spanContext)) return undefined
  const { traceId, spanId, traceFlags } = spanContext
  return { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}` }
}

/** The span that `traceHeadersOf` wrote down, as the parent of spans on the agent's side. */
export function spanOfHeaders(headers: TraceHeaders | undefined): Span {
  const [, traceId, spanId, flags] = headers?.['traceparent']?.split('-') ?? []
  if (!traceId || !spanId || !flags) return trace.wrapSpanContext(INVALID_SPAN_CONTEXT)
  return trace.wrapSpanContext({ traceId, spanId, traceFlags: Number.parseInt(flags, 16) })
}

const startChild = (parent: Span, name: string, attributes: Attributes): Span =>
  tracer().startSpan(name, { attributes }, trace.setSpan(context.active(), parent))

function failBy(span: Span, error: unknown): void {
  const { code, message } = toTrainError(error, 'AGENT_FAILED')
  fail(span, code, message)
}

function fail(span: Span, type: string, message?: string): void {
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
}
