import type { CompletionDelta } from '@aworld-train/chat'
import type { FinishReason, ToolCall, Usage } from '@aworld-train/core'
import { type Fields, readArray, readObject } from '../../read-fields.ts'
import {
  type AnswerDecoder,
  type AnswerText,
  countOf,
  createAnswerDecoder,
  fieldsOf,
  invalidAnswer,
  readingAnswer,
  type ServerAnswer,
  textOf,
  toMessage,
} from '../../server-answer.ts'

function decodeUsage(value: unknown): Usage {
  const usage = fieldsOf(value)
  return {
    promptTokens: countOf(usage['input_tokens']),
    completionTokens: countOf(usage['output_tokens']),
    cachedTokens: countOf(fieldsOf(usage['input_tokens_details'])['cached_tokens']),
  }
}

const textsOf = (parts: unknown): string =>
  Array.isArray(parts) ? parts.map((part) => textOf(fieldsOf(part)['text']) ?? textOf(fieldsOf(part)['refusal']) ?? '').join('') : ''

const toCall = (item: Fields): ToolCall => ({
  id: textOf(item['call_id']) ?? '',
  name: textOf(item['name']) ?? '',
  arguments: textOf(item['arguments']) ?? '',
})

function readItem(item: Fields, text: AnswerText): void {
  const { type } = item
  if (type === 'message') text.content = (text.content ?? '') + textsOf(item['content'])
  else if (type === 'reasoning') text.reasoning += textsOf(item['content']) || textsOf(item['summary'])
  else if (type === 'function_call') text.calls.push(toCall(item))
}

const idsOf = (value: unknown) => Int32Array.from(Array.isArray(value) ? (value as number[]) : [])

function toAnswer(response: Fields): ServerAnswer {
  const text: AnswerText = { content: null, reasoning: '', calls: [] }
  for (const [index, item] of readArray(response['output'], 'output').entries()) readItem(readObject(item, `output[${index}]`), text)
  const raw = textOf(fieldsOf(response['incomplete_details'])['reason']) ?? textOf(response['status']) ?? 'completed'
  const ended: FinishReason['unified'] = text.calls.length > 0 ? 'tool-calls' : 'stop'
  return {
    id: textOf(response['id']) ?? null,
    model: textOf(response['model']) ?? null,
    promptTokenIds: idsOf(response['prompt_token_ids']),
    completion: {
      message: toMessage(text.content, text.reasoning, text.calls),
      finishReason: { unified: raw === 'max_output_tokens' ? 'length' : ended, raw },
      tokenIds: idsOf(response['token_ids']),
      logprobs: new Float32Array(0),
      usage: decodeUsage(response['usage']),
    },
  }
}

/** Reads a whole answer of a Responses server. Items that are not text, reasoning or calls are left out. Throws POLICY_RESPONSE_INVALID. */
export const decodeResponsesAnswer = (json: string): ServerAnswer => readingAnswer(() => toAnswer(readObject(JSON.parse(json), 'body')))

/** Kinds of delta events, and the part of the answer that they add to. */
const textDeltas: ReadonlyMap<unknown, 'content' | 'reasoning'> = new Map([
  ['response.output_text.delta', 'content'],
  ['response.refusal.delta', 'content'],
  ['response.reasoning_text.delta', 'reasoning'],
  ['response.reasoning_summary_text.delta', 'reasoning'],
])

/** A decoder for one streamed answer of a Responses server, whose last event holds the whole answer. It needs no closing. */
export function createResponsesStreamDecoder(): AnswerDecoder {
  let whole: Fields | null = null
  let calls = 0

  function readEvent(event: Fields, deltas: CompletionDelta[]): void {
    const { type } = event
    const response = fieldsOf(event['response'])
    if (type === 'error') throw invalidAnswer(`is an error: ${textOf(event['message']) ?? JSON.stringify(event)}`)
    if (type === 'response.failed') throw invalidAnswer(`failed: ${textOf(fieldsOf(response['error'])['message']) ?? 'no reason given'}`)
    if (type === 'response.completed' || type === 'response.incomplete') whole = response
    const added = textDeltas.get(type)
    const text = textOf(event['delta'])
    if (added && text) deltas.push({ type: added, text })
    const item = fieldsOf(event['item'])
    if (type === 'response.output_item.done' && item['type'] === 'function_call') {
      deltas.push({ type: 'tool-call', call: toCall(item), index: calls++ })
    }
  }

  return createAnswerDecoder(readEvent, { ids: [], logprobs: [] }, () => {
    if (whole === null) throw invalidAnswer('ended before its last event')
    const response = whole
    return readingAnswer(() => toAnswer(response))
  })
}
