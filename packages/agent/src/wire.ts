import type { FinishReason, Message, ToolCall, ToolDefinition, Usage } from '@aworld-train/core'

/** Writes a message in the form of Chat Completions. Reasoning is sent back only to the policy, whose template may want it. */
export function toWireMessage(message: Message, withReasoning: boolean): Record<string, unknown> {
  const { role, content } = message
  const wire: Record<string, unknown> = { role, content }
  if (role === 'tool') wire['tool_call_id'] = message.toolCallId
  else if (message.name !== undefined) wire['name'] = message.name
  if (withReasoning && message.reasoning !== undefined) wire['reasoning_content'] = message.reasoning
  if (message.toolCalls && message.toolCalls.length > 0) {
    wire['tool_calls'] = message.toolCalls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    }))
  }
  return wire
}

export function toWireTool({ name, description, parameters }: ToolDefinition): Record<string, unknown> {
  return { type: 'function', function: description === undefined ? { name, parameters } : { name, description, parameters } }
}

/** The result of one model call. */
export interface ModelReply {
  readonly message: Message
  readonly finishReason: FinishReason
  readonly usage: Usage | null
  /** Whether the content is a tool call that the gateway could not read. */
  readonly isMalformedCall: boolean
}

interface WireMessage {
  readonly content?: unknown
  readonly refusal?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly tool_calls?: unknown
}

interface Choice {
  readonly message?: WireMessage
  readonly finish_reason?: unknown
  readonly malformed_call?: unknown
}

/** Reads the first choice of a Chat Completions response; `null` if the body is not one. Missing call ids are made from `turn`. */
export function fromWireReply(body: unknown, turn: number): ModelReply | null {
  const { choices, usage } = (body ?? {}) as { choices?: unknown; usage?: unknown }
  const choice = Array.isArray(choices) ? (choices[0] as Choice | undefined) : undefined
  const wire = choice?.message
  if (typeof wire !== 'object' || wire === null) return null
  const reasoning = wire.reasoning_content ?? wire.reasoning
  const toolCalls = readToolCalls(wire.tool_calls, turn)
  const content = readContent(wire.content) ?? (toolCalls.length === 0 ? readContent(wire.refusal) : null)
  const message: Message = {
    role: 'assistant',
    content,
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning } : {}),
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
  }
  const isMalformedCall = choice?.malformed_call === true
  return { message, finishReason: readFinishReason(choice?.finish_reason), usage: readUsage(usage), isMalformedCall }
}

function readContent(content: unknown): string | null {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return null
  return content.map((part: { text?: unknown }) => (typeof part?.text === 'string' ? part.text : '')).join('')
}

function readToolCalls(calls: unknown, turn: number): ToolCall[] {
  if (!Array.isArray(calls)) return []
  return calls.map((call: { id?: unknown; function?: { name?: unknown; arguments?: unknown } } | null, index) => {
    const { name, arguments: text } = call?.function ?? {}
    return {
      id: typeof call?.id === 'string' && call.id !== '' ? call.id : `call_${turn}_${index}`,
      name: typeof name === 'string' ? name : '',
      arguments: typeof text === 'string' ? text : JSON.stringify(text ?? {}),
    }
  })
}

const finishReasons: Readonly<Record<string, FinishReason['unified']>> = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  length: 'length',
  abort: 'aborted',
  content_filter: 'error',
  error: 'error',
}

function readFinishReason(value: unknown): FinishReason {
  const raw = typeof value === 'string' ? value : ''
  return { unified: finishReasons[raw] ?? 'stop', raw }
}

const count = (value: unknown) => (typeof value === 'number' && value >= 0 ? Math.floor(value) : 0)

function readUsage(value: unknown): Usage | null {
  if (typeof value !== 'object' || value === null) return null
  const usage = value as {
    prompt_tokens?: unknown
    completion_tokens?: unknown
    prompt_tokens_details?: { cached_tokens?: unknown } | null
  }
  return {
    promptTokens: count(usage.prompt_tokens),
    completionTokens: count(usage.completion_tokens),
    cachedTokens: count(usage.prompt_tokens_details?.cached_tokens),
  }
}
