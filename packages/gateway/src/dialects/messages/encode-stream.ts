import type { CompletionDelta } from '@aworld-train/chat'
import type { ToolCall } from '@aworld-train/core'
import type { AnswerHead, Completion, StreamEncoder, StreamPiece } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { namedEvent } from '../server-event.ts'
import { encodeFailure, encodeStop, encodeTokenIds, encodeUsage, inputJson, signatureOf } from './encode-response.ts'
import { keepThread } from './thread.ts'

export const pingEvent = namedEvent('ping', '{"type":"ping"}')

export const encodeStreamFailure = (failure: HttpFailure): string => namedEvent('error', encodeFailure(failure))

/** Writes the events of one answer: https://docs.anthropic.com/en/docs/build-with-claude/streaming */
class MessagesStream implements StreamEncoder {
  readonly #head: AnswerHead
  #open: 'text' | 'thinking' | null = null
  #index = 0

  constructor(head: AnswerHead) {
    this.#head = head
  }

  start(): string {
    const { id, model, promptTokenIds } = this.#head
    const usage = encodeUsage({ promptTokens: promptTokenIds.length, completionTokens: 0, cachedTokens: 0 })
    const message = {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    }
    return this.#event('message_start', { message }) + pingEvent
  }

  piece({ deltas }: StreamPiece): string {
    let text = ''
    for (const delta of deltas) text += this.#delta(delta)
    return text
  }

  end(completion: Completion): string {
    keepThread(this.#head, completion)
    const delta = encodeStop(completion)
    const ids = encodeTokenIds(this.#head, completion)
    return (
      this.#close() +
      this.#event('message_delta', { delta, usage: encodeUsage(completion.usage), ...ids }) +
      this.#event('message_stop', {})
    )
  }

  fail = encodeStreamFailure

  #delta(delta: CompletionDelta): string {
    if (delta.type === 'tool-call') return this.#call(delta.call)
    const type = delta.type === 'content' ? 'text' : 'thinking'
    let text = ''
    if (this.#open !== type) {
      text = this.#close() + this.#start(type === 'text' ? { type, text: '' } : { type, thinking: '', signature: '' })
      this.#open = type
    }
    const change = type === 'text' ? { type: 'text_delta', text: delta.text } : { type: 'thinking_delta', thinking: delta.text }
    return text + this.#change(change)
  }

  #call({ id, name, arguments: argumentsText }: ToolCall): string {
    const text = this.#close() + this.#start({ type: 'tool_use', id, name, input: {} })
    return text + this.#change({ type: 'input_json_delta', partial_json: inputJson(argumentsText) }) + this.#stop()
  }

  #close(): string {
    if (this.#open === null) return ''
    const signed = this.#open === 'thinking' ? this.#change({ type: 'signature_delta', signature: signatureOf(this.#head) }) : ''
    this.#open = null
    return signed + this.#stop()
  }

  #start(block: object): string {
    return this.#event('content_block_start', { index: this.#index, content_block: block })
  }

  #change(delta: object): string {
    return this.#event('content_block_delta', { index: this.#index, delta })
  }

  #stop(): string {
    return this.#event('content_block_stop', { index: this.#index++ })
  }

  #event(type: string, fields: object): string {
    return namedEvent(type, JSON.stringify({ type, ...fields }))
  }
}

export const createStream = (head: AnswerHead): StreamEncoder => new MessagesStream(head)
