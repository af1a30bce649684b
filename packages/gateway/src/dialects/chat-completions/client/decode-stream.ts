import type { CompletionDelta } from '@aworld-train/chat'
import type { Usage } from '@aworld-train/core'
import type { Fields } from '../../read-fields.ts'
import {
  type AnswerDecoder,
  type AnswerText,
  createAnswerDecoder,
  fieldsOf,
  invalidAnswer,
  type ServerAnswer,
  textOf,
  toMessage,
} from '../../server-answer.ts'
import { decodeFinishReason, decodeIds, decodeUsage, logprobEntriesOf, logprobOf } from './decode-answer.ts'

/** Gathers the chunks of one answer. Calls are shown one by one, each when the next begins or the answer ends. */
class ChatChunks {
  readonly tokens: { readonly ids: number[]; readonly logprobs: number[]; readonly entries?: object[] }
  readonly #text: AnswerText = { content: null, reasoning: '', calls: [] }
  #shown = 0
  #finish: string | null = null
  #usage: Usage | null = null
  #id: string | null = null
  #model: string | null = null
  #promptTokenIds: Int32Array = new Int32Array(0)

  constructor(keepsEntries: boolean) {
    this.tokens = { ids: [], logprobs: [], ...(keepsEntries && { entries: [] }) }
  }

  read(chunk: Fields, deltas: CompletionDelta[]): void {
    const { error } = chunk
    if (error) throw invalidAnswer(`is an error: ${textOf(fieldsOf(error)['message']) ?? JSON.stringify(error)}`)
    this.#id ??= textOf(chunk['id']) ?? null
    this.#model ??= textOf(chunk['model']) ?? null
    if (Array.isArray(chunk['prompt_token_ids'])) this.#promptTokenIds = decodeIds(chunk['prompt_token_ids'])
    if (chunk['usage']) this.#usage = decodeUsage(chunk['usage'])
    const choice = Array.isArray(chunk['choices']) ? fieldsOf(chunk['choices'][0]) : {}
    this.#readDelta(fieldsOf(choice['delta']), deltas)
    if (Array.isArray(choice['token_ids'])) for (const id of choice['token_ids']) this.tokens.ids.push(Number(id))
    for (const entry of logprobEntriesOf(choice['logprobs'])) {
      this.tokens.entries?.push(entry)
      this.tokens.logprobs.push(logprobOf(entry))
    }
    this.#finish = textOf(choice['finish_reason']) ?? this.#finish
    if (this.#finish !== null) this.#showCalls(deltas, this.#text.calls.length)
  }

  answer(): ServerAnswer {
    if (this.#finish === null) throw invalidAnswer('ended before its finish reason')
    const { content, reasoning, calls } = this.#text
    const { ids, logprobs, entries } = this.tokens
    return {
      id: this.#id,
      model: this.#model,
      promptTokenIds: this.#promptTokenIds,
      completion: {
        message: toMessage(content, reasoning, calls),
        finishReason: decodeFinishReason(this.#finish, calls.length > 0),
        tokenIds: Int32Array.from(ids),
        logprobs: Float32Array.from(logprobs),
        logprobEntries: entries,
        usage: this.#usage ?? { promptTokens: this.#promptTokenIds.length, completionTokens: ids.length, cachedTokens: 0 },
      },
    }
  }

  #readDelta(delta: Fields, deltas: CompletionDelta[]): void {
    const thought = textOf(delta['reasoning_content']) ?? textOf(delta['reasoning'])
    if (thought) {
      this.#text.reasoning += thought
      deltas.push({ type: 'reasoning', text: thought })
    }
    const content = textOf(delta['content']) ?? textOf(delta['refusal'])
    if (content) {
      this.#text.content = (this.#text.content ?? '') + content
      deltas.push({ type: 'content', text: content })
    }
    if (Array.isArray(delta['tool_calls'])) for (const part of delta['tool_calls']) this.#readCall(fieldsOf(part), deltas)
  }

  #readCall(part: Fields, deltas: CompletionDelta[]): void {
    const { calls } = this.#text
    const position = part['index']
    const index = typeof position === 'number' ? position : Math.max(0, calls.length - 1)
    if (index > calls.length || !Number.isSafeInteger(index) || index < 0) {
      throw invalidAnswer(`has a part of call ${index}, but ${calls.length} calls have begun`)
    }
    calls[index] ??= { id: '', name: '', arguments: '' }
    const call = calls[index]
    const called = fieldsOf(part['function'])
    call.id ||= textOf(part['id']) ?? ''
    call.name += textOf(called['name']) ?? ''
    call.arguments += textOf(called['arguments']) ?? ''
    this.#showCalls(deltas, index)
  }

  #showCalls(deltas: CompletionDelta[], before: number): void {
    for (; this.#shown < before; this.#shown++) {
      deltas.push({ type: 'tool-call', call: { ...this.#text.calls[this.#shown]! }, index: this.#shown })
    }
  }
}

/**
 * A decoder for one streamed answer of a Chat Completions server. It needs no closing. Entries of logprobs are kept
 * only if the client asks for them.
 */
export function createChatStreamDecoder(keepsEntries = false): AnswerDecoder {
  const chunks = new ChatChunks(keepsEntries)
  return createAnswerDecoder(
    (event, deltas) => chunks.read(event, deltas),
    chunks.tokens,
    () => chunks.answer(),
  )
}
