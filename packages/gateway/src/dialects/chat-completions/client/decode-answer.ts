import { type FinishReason, type Message, type ToolCall, TrainError, type Usage } from '@aworld-train/protocol'
import type { Completion } from '../../../call.ts'
import { type Fields, readArray, readObject } from '../../read-fields.ts'

/** What a server of Chat Completions answered. */
export interface ChatAnswer {
  readonly id: string | null
  /** The model as the server names it. */
  readonly model: string | null
  /** Ids and logprobs are empty where the server reports none. */
  readonly completion: Completion
  /** Empty where the server reports none. */
  readonly promptTokenIds: Int32Array
}

const finishReasons: Readonly<Record<string, FinishReason['unified']>> = {
  stop: 'stop',
  eos: 'stop',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  length: 'length',
  abort: 'aborted',
  content_filter: 'stop',
  error: 'error',
}

/** The reason of a choice; one that nobody knows counts as a stop and keeps its own word. */
export function decodeFinishReason(raw: string, hasCalls: boolean): FinishReason {
  const unified = finishReasons[raw] ?? 'stop'
  return { unified: unified === 'stop' && hasCalls ? 'tool-calls' : unified, raw }
}

const count = (value: unknown) => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0)

export function decodeUsage(value: unknown): Usage {
  const usage = (typeof value === 'object' && value !== null ? value : {}) as Fields
  const details = usage['prompt_tokens_details'] as Fields | null | undefined
  return {
    promptTokens: count(usage['prompt_tokens']),
    completionTokens: count(usage['completion_tokens']),
    cachedTokens: count(details?.['cached_tokens']),
  }
}

/** An error of the catalogue for an answer that is not what the format says. */
export function invalidAnswer(what: string, cause?: unknown): TrainError {
  return new TrainError('POLICY_RESPONSE_INVALID', `The model server's answer ${what}; check that it serves Chat Completions.`, { cause })
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined)

export function decodeIds(value: unknown): Int32Array {
  return Array.isArray(value) ? Int32Array.from(value as number[]) : new Int32Array(0)
}

/** Logprobs of the sampled tokens, one an entry. */
export function decodeLogprobs(value: unknown): number[] {
  const content = (value as Fields | null | undefined)?.['content']
  return Array.isArray(content) ? content.map((entry) => Number((entry as Fields)['logprob'])) : []
}

function decodeCall(value: unknown, index: number): ToolCall {
  const call = readObject(value, `tool_calls[${index}]`)
  const called = readObject(call['function'], `tool_calls[${index}].function`)
  return { id: text(call['id']) ?? '', name: text(called['name']) ?? '', arguments: text(called['arguments']) ?? '' }
}

function decodeMessage(fields: Fields): Message {
  const reasoning = text(fields['reasoning_content']) ?? text(fields['reasoning'])
  const calls = Array.isArray(fields['tool_calls']) ? fields['tool_calls'].map(decodeCall) : []
  const content = text(fields['content']) ?? text(fields['refusal']) ?? null
  return {
    role: 'assistant',
    content,
    ...(reasoning && { reasoning }),
    ...(calls.length > 0 && { toolCalls: calls }),
  }
}

/** A whole answer of a Chat Completions server. Throws POLICY_RESPONSE_INVALID. */
export function decodeChatAnswer(json: string): ChatAnswer {
  try {
    const body = readObject(JSON.parse(json), 'body')
    const choice = readObject(readArray(body['choices'], 'choices')[0], 'choices[0]')
    const message = decodeMessage(readObject(choice['message'], 'choices[0].message'))
    return {
      id: text(body['id']) ?? null,
      model: text(body['model']) ?? null,
      promptTokenIds: decodeIds(body['prompt_token_ids']),
      completion: {
        message,
        finishReason: decodeFinishReason(text(choice['finish_reason']) ?? 'stop', message.toolCalls !== undefined),
        tokenIds: decodeIds(choice['token_ids']),
        logprobs: Float32Array.from(decodeLogprobs(choice['logprobs'])),
        usage: decodeUsage(body['usage']),
      },
    }
  } catch (cause) {
    throw invalidAnswer(`cannot be read: ${cause instanceof Error ? cause.message : cause}`, cause)
  }
}
