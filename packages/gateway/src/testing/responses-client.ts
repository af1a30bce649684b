import type { CompletionDelta } from '@aworld-train/chat'
import type { FinishReason, Message, ToolCall, ToolDefinition } from '@aworld-train/protocol'
import type { ModelCall, ToolChoice } from '../call.ts'
import type { Fields } from '../dialects/read-fields.ts'
import {
  createAnswerDecoder,
  fieldsOf,
  invalidAnswer,
  readingAnswer,
  type ServerAnswer,
  textOf,
  toMessage,
} from '../dialects/server-answer.ts'
import type { Body, DialectClient } from './dialect-client.ts'

function toItems({ role, content, reasoning, toolCalls = [], toolCallId }: Message): Body[] {
  if (role === 'tool') return [{ type: 'function_call_output', call_id: toolCallId, output: content }]
  if (role !== 'assistant') return [{ role, content }]
  const items: Body[] = []
  if (reasoning !== undefined) items.push({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: reasoning }] })
  if (content !== null) items.push({ type: 'message', role, content: [{ type: 'output_text', text: content, annotations: [] }] })
  for (const { id, name, arguments: text } of toolCalls) items.push({ type: 'function_call', call_id: id, name, arguments: text })
  return items
}

const toTool = ({ name, description, parameters }: ToolDefinition) => ({ type: 'function', name, description, parameters, strict: null })

const toChoice = ({ kind, name }: ToolChoice) => (kind === 'named' ? { type: 'function', name } : kind)

function readItems(output: readonly Fields[]): Message {
  let content: string | null = null
  let reasoning = ''
  const calls: ToolCall[] = []
  for (const item of output) {
    const parts = [...((item['content'] ?? []) as Fields[]), ...((item['summary'] ?? []) as Fields[])]
    const text = parts.map((part) => textOf(part['text']) ?? '').join('')
    if (item['type'] === 'message') content = (content ?? '') + text
    else if (item['type'] === 'reasoning') reasoning += text
    else calls.push({ id: String(item['call_id']), name: String(item['name']), arguments: String(item['arguments']) })
  }
  return toMessage(content, reasoning, calls)
}

function toAnswer(response: Fields): ServerAnswer {
  const message = readItems(response['output'] as Fields[])
  const usage = response['usage'] as { input_tokens: number; output_tokens: number; input_tokens_details: { cached_tokens: number } }
  const stopped: FinishReason['unified'] = message.toolCalls ? 'tool-calls' : 'stop'
  return {
    id: String(response['id']),
    model: String(response['model']),
    promptTokenIds: Int32Array.from((response['prompt_token_ids'] ?? []) as number[]),
    completion: {
      message,
      finishReason: { unified: response['status'] === 'incomplete' ? 'length' : stopped, raw: String(response['status']) },
      tokenIds: Int32Array.from((response['token_ids'] ?? []) as number[]),
      logprobs: new Float32Array(0),
      usage: {
        promptTokens: usage.input_tokens,
        completionTokens: usage.output_tokens,
        cachedTokens: usage.input_tokens_details.cached_tokens,
      },
    },
  }
}

function readEvent(event: Fields, deltas: CompletionDelta[], calls: { count: number }): void {
  const { type, delta } = event
  if (type === 'response.output_text.delta') deltas.push({ type: 'content', text: String(delta) })
  if (type === 'response.reasoning_text.delta') deltas.push({ type: 'reasoning', text: String(delta) })
  const item = fieldsOf(event['item'])
  if (type === 'response.output_item.done' && item['type'] === 'function_call') {
    const call = { id: String(item['call_id']), name: String(item['name']), arguments: String(item['arguments']) }
    deltas.push({ type: 'tool-call', call, index: calls.count++ })
  }
}

function createDecoder() {
  const calls = { count: 0 }
  let final: Fields | null = null
  return createAnswerDecoder(
    (event, deltas) => {
      if (event['type'] === 'error' || event['type'] === 'response.failed') throw invalidAnswer(`is an error: ${JSON.stringify(event)}`)
      if (event['type'] === 'response.completed' || event['type'] === 'response.incomplete') final = fieldsOf(event['response'])
      readEvent(event, deltas, calls)
    },
    { ids: [], logprobs: [] },
    () => {
      if (!final) throw invalidAnswer('ended before its last event')
      return toAnswer(final)
    },
  )
}

/** A client of Responses that sends its whole history. */
export const responsesClient: DialectClient = {
  writeCall: ({ model, messages, tools, toolChoice, stream, maxTokens, asked }: ModelCall) => ({
    model,
    input: messages.flatMap(toItems),
    tools: tools.map(toTool),
    tool_choice: toChoice(toolChoice),
    parallel_tool_calls: toolChoice.parallel,
    stream,
    max_output_tokens: maxTokens,
    temperature: asked.temperature ?? null,
    top_p: asked.topP ?? null,
  }),
  nextBody: (body, answer, user) => ({
    ...body,
    input: [...(body['input'] as object[]), ...(answer['output'] as object[]), { role: 'user', content: user }],
  }),
  toolsText: (schema) => `[{"type":"function","name":"f","strict":null,"parameters":${schema}}]`,
  bodyWithPart: (part) => ({ input: [{ role: 'user', content: [part] }] }),
  readAnswer: (json) => readingAnswer(() => toAnswer(JSON.parse(json) as Fields)),
  createDecoder,
  expected: (messages) => [...messages],
}
