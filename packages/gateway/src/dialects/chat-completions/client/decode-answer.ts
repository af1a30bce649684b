import type { FinishReason, Message, ToolCall, Usage } from '@aworld-train/core'
import { type Fields, readArray, readObject } from '../../read-fields.ts'
import { countOf, fieldsOf, invalidAnswer, readingAnswer, type ServerAnswer, textOf, toMessage } from '../../server-answer.ts'

const finishReasons: ReadonlyMap<string, FinishReason['unified']> = new Map([
  ['stop', 'stop'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['length', 'length'],
  ['abort', 'aborted'],
  ['error', 'error'],
])

/** The finish reason of a choice; an unknown one counts as a stop and keeps its raw name. */
export function decodeFinishReason(raw: string, hasCalls: boolean): FinishReason {
  const unified = finishReasons.get(raw) ?? 'stop'
  return { unified: unified === 'stop' && hasCalls ? 'tool-calls' : unified, raw }
}

export function decodeUsage(value: unknown): Usage {
  const usage = fieldsOf(value)
  return {
    promptTokens: countOf(usage['prompt_tokens']),
    completionTokens: countOf(usage['completion_tokens']),
    cachedTokens: countOf(fieldsOf(usage['prompt_tokens_details'])['cached_tokens']),
  }
}

export function decodeIds(value: unknown): Int32Array {
  return Array.isArray(value) ? Int32Array.from(value as number[]) : new Int32Array(0)
}

/** The entries of a choice's `logprobs`, one for each sampled token. */
export function logprobEntriesOf(value: unknown): object[] {
  const content = fieldsOf(value)['content']
  return Array.isArray(content) ? content.map(fieldsOf) : []
}

export const logprobOf = (entry: object): number => Number((entry as Fields)['logprob'])

function decodeCall(value: unknown, index: number): ToolCall {
  const call = readObject(value, `tool_calls[${index}]`)
  const called = readObject(call['function'], `tool_calls[${index}].function`)
  return { id: textOf(call['id']) ?? '', name: textOf(called['name']) ?? '', arguments: textOf(called['arguments']) ?? '' }
}

function decodeMessage(fields: Fields): Message {
  const reasoning = textOf(fields['reasoning_content']) ?? textOf(fields['reasoning']) ?? ''
  const calls = Array.isArray(fields['tool_calls']) ? fields['tool_calls'].map(decodeCall) : []
  return toMessage(textOf(fields['content']) ?? textOf(fields['refusal']) ?? null, reasoning, calls)
}

/** A whole answer of a Chat Completions server. Throws POLICY_RESPONSE_INVALID. */
export function decodeChatAnswer(json: string): ServerAnswer {
  return readingAnswer(() => {
    const body = readObject(JSON.parse(json), 'body')
    if (body['error']) throw invalidAnswer(`is an error: ${textOf(fieldsOf(body['error'])['message']) ?? JSON.stringify(body['error'])}`)
    const choice = readObject(readArray(body['choices'], 'choices')[0], 'choices[0]')
    const message = decodeMessage(readObject(choice['message'], 'choices[0].message'))
    const logprobEntries = logprobEntriesOf(choice['logprobs'])
    return {
      id: textOf(body['id']) ?? null,
      model: textOf(body['model']) ?? null,
      promptTokenIds: decodeIds(body['prompt_token_ids']),
      completion: {
        message,
        finishReason: decodeFinishReason(textOf(choice['finish_reason']) ?? 'stop', message.toolCalls !== undefined),
        tokenIds: decodeIds(choice['token_ids']),
        logprobs: Float32Array.from(logprobEntries, logprobOf),
        logprobEntries,
        usage: decodeUsage(body['usage']),
      },
    }
  })
}
