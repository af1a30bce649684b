import { isRecord, type Message, type ToolCall, type Usage } from '@aworld-train/core'
import type { AnswerHead, Completion } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { type CompletionEnd, completionEnd } from '../completion-end.ts'
import { keepThread } from './thread.ts'

const stopReasons: Readonly<Record<CompletionEnd, string>> = {
  stopped: 'end_turn',
  calls: 'tool_use',
  cut: 'max_tokens',
  filtered: 'refusal',
}

/** The reason why a message ended, and the stop sequence that ended it. */
export function encodeStop({ finishReason, stopSequence }: Completion) {
  const end = completionEnd(finishReason)
  const stopped = end === 'stopped' && stopSequence !== undefined
  return { stop_reason: stopped ? 'stop_sequence' : stopReasons[end], stop_sequence: stopped ? stopSequence : null }
}

/** The API does not count tokens read from a cache among the input tokens. */
export const encodeUsage = ({ promptTokens, completionTokens, cachedTokens }: Usage) => ({
  input_tokens: promptTokens - cachedTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cachedTokens,
  output_tokens: completionTokens,
})

/** Stands in for a signature. Clients hand it back unread, and some require it. */
export const signatureOf = ({ id }: AnswerHead): string => Buffer.from(`aworld-train.1.${id}`).toString('base64')

/** Arguments as the text of a JSON object. A value that is no object becomes its member `arguments`. */
export function inputJson(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return text
  } catch {
    // It is written below, like a value that is no object.
  }
  return text.trim() === '' ? '{}' : JSON.stringify({ arguments: text })
}

/** A call as a block, its input as it was written. */
export const toolUse = ({ id, name, arguments: text }: ToolCall) =>
  `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":${inputJson(text)}}`

function encodeContent(head: AnswerHead, { content, reasoning, toolCalls = [] }: Message): string {
  const blocks: string[] = []
  if (reasoning) blocks.push(JSON.stringify({ type: 'thinking', thinking: reasoning, signature: signatureOf(head) }))
  if (content) blocks.push(JSON.stringify({ type: 'text', text: content }))
  for (const call of toolCalls) blocks.push(toolUse(call))
  return `[${blocks.join(',')}]`
}

export const encodeTokenIds = (head: AnswerHead, { tokenIds }: Completion) =>
  head.call.wants.tokenIds ? { prompt_token_ids: Array.from(head.promptTokenIds), token_ids: Array.from(tokenIds) } : {}

/** The body of an answer that is not streamed. */
export function encodeResponse(head: AnswerHead, completion: Completion): string {
  keepThread(head, completion)
  const json = JSON.stringify({
    id: `msg_${head.id}`,
    type: 'message',
    role: 'assistant',
    model: head.model,
    ...encodeStop(completion),
    usage: encodeUsage(completion.usage),
    ...encodeTokenIds(head, completion),
  })
  return `${json.slice(0, -1)},"content":${encodeContent(head, completion.message)}}`
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
}

/**
 * An error in Anthropic's shape, with the field beside it. The code stands in it twice, because Anthropic's client
 * looks for reasons in `details`.
 */
export function encodeFailure({ status, message, code, param, requestId }: HttpFailure): string {
  const type = errorTypes[status] ?? 'api_error'
  return JSON.stringify({ type: 'error', error: { type, message, code, param, details: { error_code: code } }, request_id: requestId })
}
