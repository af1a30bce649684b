import type { CompletionDelta } from '@aworld-train/chat'
import type { Message, ToolCall, Usage } from '@aworld-train/protocol'
import type { StreamPiece } from '../../../call.ts'
import { createEventReader } from '../../read-events.ts'
import type { Fields } from '../../read-fields.ts'
import { type ChatAnswer, decodeFinishReason, decodeIds, decodeLogprobs, decodeUsage, invalidAnswer } from './decode-answer.ts'

/** Reads the events of one streamed answer, in chunks as they come. */
export interface ChatStreamDecoder {
  /** What the chunk shows; a call is shown when its arguments are whole. Throws POLICY_RESPONSE_INVALID, also for an error event. */
  push(chunk: Uint8Array): StreamPiece | null
  /** The rest, and the whole answer. Throws POLICY_RESPONSE_INVALID for a stream that ended before its finish reason. */
  finish(): { readonly piece: StreamPiece | null; readonly answer: ChatAnswer }
}

interface OpenCall {
  id: string
  name: string
  arguments: string
}

/** A decoder for one answer; nothing to close. */
export function createChatStreamDecoder(): ChatStreamDecoder {
  const events = createEventReader()
  const calls: OpenCall[] = []
  const tokenIds: number[] = []
  const logprobs: number[] = []
  let shownCalls = 0
  let content: string | null = null
  let reasoning = ''
  let finish: string | null = null
  let usage: Usage | null = null
  let id: string | null = null
  let model: string | null = null
  let promptTokenIds: Int32Array = new Int32Array(0)

  function showCalls(deltas: CompletionDelta[], before: number): void {
    for (; shownCalls < before; shownCalls++) deltas.push({ type: 'tool-call', call: { ...calls[shownCalls]! }, index: shownCalls })
  }

  function readCalls(value: unknown, deltas: CompletionDelta[]): void {
    if (!Array.isArray(value)) return
    for (const part of value as Fields[]) {
      const called = (part['function'] ?? {}) as Fields
      const given = part['index']
      const index = typeof given === 'number' ? given : Math.max(0, calls.length - 1)
      if (index > calls.length || index < 0) throw invalidAnswer(`names tool call ${index} before call ${calls.length}`)
      calls[index] ??= { id: '', name: '', arguments: '' }
      const call = calls[index]
      if (typeof part['id'] === 'string') call.id ||= part['id']
      if (typeof called['name'] === 'string') call.name += called['name']
      if (typeof called['arguments'] === 'string') call.arguments += called['arguments']
      // A server writes calls one after the other.
      showCalls(deltas, index)
    }
  }

  function readChunk(chunk: Fields, deltas: CompletionDelta[]): void {
    if (chunk['error']) throw invalidAnswer(`is an error: ${(chunk['error'] as Fields)['message'] ?? JSON.stringify(chunk['error'])}`)
    if (typeof chunk['id'] === 'string') id ??= chunk['id']
    if (typeof chunk['model'] === 'string') model ??= chunk['model']
    if (Array.isArray(chunk['prompt_token_ids'])) promptTokenIds = decodeIds(chunk['prompt_token_ids'])
    if (chunk['usage']) usage = decodeUsage(chunk['usage'])
    const choice = (chunk['choices'] as Fields[] | undefined)?.[0]
    if (!choice) return
    const delta = (choice['delta'] ?? {}) as Fields
    const thought = delta['reasoning_content'] ?? delta['reasoning']
    if (typeof thought === 'string' && thought !== '') {
      reasoning += thought
      deltas.push({ type: 'reasoning', text: thought })
    }
    const said = delta['content'] ?? delta['refusal']
    if (typeof said === 'string' && said !== '') {
      content = (content ?? '') + said
      deltas.push({ type: 'content', text: said })
    }
    readCalls(delta['tool_calls'], deltas)
    if (typeof choice['finish_reason'] === 'string') finish = choice['finish_reason']
    if (Array.isArray(choice['token_ids'])) tokenIds.push(...(choice['token_ids'] as number[]))
    logprobs.push(...decodeLogprobs(choice['logprobs']))
  }

  function read(texts: readonly string[]): StreamPiece | null {
    const deltas: CompletionDelta[] = []
    const [ids, values] = [tokenIds.length, logprobs.length]
    for (const text of texts) {
      if (text === '[DONE]') continue
      let chunk: unknown
      try {
        chunk = JSON.parse(text)
      } catch (cause) {
        throw invalidAnswer('has an event that is not JSON', cause)
      }
      if (typeof chunk !== 'object' || chunk === null) throw invalidAnswer('has an event that is not an object')
      readChunk(chunk as Fields, deltas)
    }
    if (finish !== null) showCalls(deltas, calls.length)
    if (deltas.length === 0 && tokenIds.length === ids && logprobs.length === values) return null
    return { deltas, tokenIds: tokenIds.slice(ids), logprobs: logprobs.slice(values) }
  }

  return {
    push: (chunk) => read(events.push(chunk)),
    finish() {
      const piece = read(events.finish())
      if (finish === null) throw invalidAnswer('ended before its finish reason')
      const toolCalls: ToolCall[] = calls.map((call) => ({ ...call }))
      const message: Message = {
        role: 'assistant',
        content,
        ...(reasoning !== '' && { reasoning }),
        ...(toolCalls.length > 0 && { toolCalls }),
      }
      const answer: ChatAnswer = {
        id,
        model,
        promptTokenIds,
        completion: {
          message,
          finishReason: decodeFinishReason(finish, toolCalls.length > 0),
          tokenIds: Int32Array.from(tokenIds),
          logprobs: Float32Array.from(logprobs),
          usage: usage ?? { promptTokens: promptTokenIds.length, completionTokens: tokenIds.length, cachedTokens: 0 },
        },
      }
      return { piece, answer }
    },
  }
}
