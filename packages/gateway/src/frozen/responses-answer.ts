import type { FinishReason, ToolCall, Usage } from '@aworld-train/protocol'
import { type Fields, readArray, readObject } from '../dialects/read-fields.ts'
import {
  type AnswerDecoder,
  countOf,
  createAnswerDecoder,
  fieldsOf,
  invalidAnswer,
  readingAnswer,
  type ServerAnswer,
  textOf,
  toMessage,
} from '../dialects/server-answer.ts'

function decodeUsage(value: unknown): Usage {
  const usage = fieldsOf(value)
  return {
    promptTokens: countOf(usage['input_tokens']),
    completionTokens: countOf(usage['output_tokens']),
    cachedTokens: countOf(fieldsOf(usage['input_tokens_details'])['cached_tokens']),
  }
}

const textsOf = (parts: unknown) => (Array.isArray(parts) ? parts.map((part) => textOf(fieldsOf(part)['text']) ?? '').join('') : '')

function toAnswer(response: Fields): ServerAnswer {
  const calls: ToolCall[] = []
  let content: string | null = null
  let reasoning = ''
  for (const [index, value] of readArray(response['output'], 'output').entries()) {
    const item = readObject(value, `output[${index}]`)
    if (item['type'] === 'message') content = (content ?? '') + textsOf(item['content'])
    else if (item['type'] === 'reasoning') reasoning += textsOf(item['summary'])
    else if (item['type'] === 'function_call') {
      calls.push({ id: textOf(item['call_id']) ?? '', name: textOf(item['name']) ?? '', arguments: textOf(item['arguments']) ?? '' })
    }
  }
  const raw = textOf(fieldsOf(response['incomplete_details'])['reason']) ?? textOf(response['status']) ?? 'completed'
  const ended: FinishReason['unified'] = calls.length > 0 ? 'tool-calls' : 'stop'
  return {
    id: textOf(response['id']) ?? null,
    model: textOf(response['model']) ?? null,
    promptTokenIds: new Int32Array(0),
    completion: {
      message: toMessage(content, reasoning, calls),
      finishReason: { unified: raw === 'max_output_tokens' ? 'length' : ended, raw },
      tokenIds: new Int32Array(0),
      logprobs: new Float32Array(0),
      usage: decodeUsage(response['usage']),
    },
  }
}

/** A whole answer of a Responses server: https://platform.openai.com/docs/api-reference/responses/object */
export const decodeResponsesAnswer = (json: string): ServerAnswer => readingAnswer(() => toAnswer(readObject(JSON.parse(json), 'body')))

/** A decoder for one streamed answer: its last event holds the whole. */
export function createResponsesStreamDecoder(): AnswerDecoder {
  let whole: Fields | null = null
  return createAnswerDecoder(
    (event) => {
      const { type } = event
      if (type === 'error') throw invalidAnswer(`is an error: ${textOf(event['message']) ?? JSON.stringify(event)}`)
      const response = fieldsOf(event['response'])
      if (type === 'response.failed') throw invalidAnswer(`failed: ${textOf(fieldsOf(response['error'])['message']) ?? 'no reason given'}`)
      if (type === 'response.completed' || type === 'response.incomplete') whole = response
    },
    { ids: [], logprobs: [] },
    () => {
      if (!whole) throw invalidAnswer('ended before its last event')
      return readingAnswer(() => toAnswer(whole!))
    },
  )
}
