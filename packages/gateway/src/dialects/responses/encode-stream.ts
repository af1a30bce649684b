import type { CompletionDelta } from '@aworld-train/chat'
import type { ToolCall } from '@aworld-train/core'
import type { AnswerHead, Completion, StreamEncoder, StreamPiece } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { namedEvent } from '../server-event.ts'
import { fromCustomArguments } from '../tools-json.ts'
import { callItem, callOf, type ItemStatus, itemStatus, messageItem, reasoningItem, textPart } from './encode-items.ts'
import { encodeFinished, encodeResponseObject, finalStatus, includedLogprobs } from './encode-response.ts'

/** The item whose text is being sent. */
interface OpenItem {
  readonly type: 'message' | 'reasoning'
  readonly id: string
  readonly index: number
  text: string
  logprobs: readonly object[]
}

/** The error event of a stream. `sequence` is its place in the stream. */
export function encodeErrorEvent({ code, message, param }: HttpFailure, sequence: number): string {
  return namedEvent('error', JSON.stringify({ type: 'error', code, message, param, sequence_number: sequence }))
}

/** Writes the events of one answer: https://platform.openai.com/docs/api-reference/responses-streaming */
class ResponsesStream implements StreamEncoder {
  readonly #head: AnswerHead
  readonly #summary: boolean
  readonly #output: object[] = []
  #open: OpenItem | null = null
  #sequence = 0
  /**
   * Logprobs that no event has carried yet, and the number of those carried. Logprobs of tokens before a text, such as
   * its reasoning, go with that text.
   */
  #unshown: readonly object[] = []
  #shown = 0

  constructor(head: AnswerHead) {
    this.#head = head
    this.#summary = callOf(head).responses.summary
  }

  start(): string {
    const response = encodeResponseObject(this.#head, { status: 'in_progress', output: [] })
    return this.#lifecycle('response.created', response) + this.#lifecycle('response.in_progress', response)
  }

  piece(piece: StreamPiece): string {
    let text = ''
    this.#unshown = this.#unshown.concat(includedLogprobs(this.#head, piece))
    for (const delta of piece.deltas) text += this.#delta(delta)
    return text
  }

  end(completion: Completion): string {
    const status = itemStatus(completion)
    this.#unshown = includedLogprobs(this.#head, completion).slice(this.#shown)
    const empty = this.#output.length === 0 && !this.#open
    let text = empty ? this.#openMessage() : ''
    text += this.#close(status)
    const json = encodeFinished(this.#head, completion, this.#output)
    return text + this.#lifecycle(`response.${finalStatus(completion)}`, json)
  }

  /** Writes both events of a failure: clients that collect the response read the first, and those that read events stop at the second. */
  fail(failure: HttpFailure): string {
    const begun = this.#sequence > 0
    const json = encodeResponseObject(this.#head, { status: 'failed', output: this.#output, failure })
    return (begun ? this.#lifecycle('response.failed', json) : '') + encodeErrorEvent(failure, this.#sequence++)
  }

  #delta(delta: CompletionDelta): string {
    if (delta.type === 'content') return this.#message(delta.text)
    if (delta.type === 'reasoning') return this.#reasoning(delta.text)
    return this.#close('completed') + this.#call(delta.call)
  }

  #message(delta: string): string {
    let text = ''
    if (this.#open?.type !== 'message') text += this.#close('completed') + this.#openMessage()
    const open = this.#open!
    open.text += delta
    return text + this.#event('response.output_text.delta', { ...partOf(open), delta, logprobs: this.#show(open) })
  }

  #openMessage(): string {
    const item = messageItem(this.#head, this.#output.length, [], 'in_progress')
    this.#open = { type: 'message', id: item.id, index: this.#output.length, text: '', logprobs: [] }
    return this.#added(item) + this.#event('response.content_part.added', { ...partOf(this.#open), part: textPart('') })
  }

  #reasoning(delta: string): string {
    let text = ''
    if (this.#open?.type !== 'reasoning') text += this.#close('completed') + this.#openReasoning()
    const open = this.#open!
    open.text += delta
    if (this.#summary) return text + this.#event('response.reasoning_summary_text.delta', { ...summaryOf(open), delta })
    return text + this.#event('response.reasoning_text.delta', { ...partOf(open), delta })
  }

  #openReasoning(): string {
    const item = reasoningItem(this.#head, this.#output.length, null, 'in_progress')
    const open: OpenItem = { type: 'reasoning', id: item.id, index: this.#output.length, text: '', logprobs: [] }
    this.#open = open
    const added = this.#added(item)
    if (this.#summary) {
      return added + this.#event('response.reasoning_summary_part.added', { ...summaryOf(open), part: { type: 'summary_text', text: '' } })
    }
    return added + this.#event('response.content_part.added', { ...partOf(open), part: { type: 'reasoning_text', text: '' } })
  }

  #call(call: ToolCall): string {
    const index = this.#output.length
    const begun = callItem(this.#head, index, call, 'in_progress')
    const item = callItem(this.#head, index, call, 'completed')
    const at = { item_id: item.id, output_index: index }
    let text = this.#added(begun)
    if (item.type === 'custom_tool_call') {
      const input = fromCustomArguments(call.arguments)
      text += this.#event('response.custom_tool_call_input.delta', { ...at, delta: input })
      text += this.#event('response.custom_tool_call_input.done', { ...at, input })
    } else {
      const { arguments: argumentsText } = call
      text += this.#event('response.function_call_arguments.delta', { ...at, delta: argumentsText })
      text += this.#event('response.function_call_arguments.done', { ...at, name: item.name, arguments: argumentsText })
    }
    return text + this.#done(item)
  }

  #show(open: OpenItem): readonly object[] {
    const entries = this.#unshown
    this.#unshown = []
    this.#shown += entries.length
    open.logprobs = open.logprobs.concat(entries)
    return entries
  }

  #close(status: ItemStatus): string {
    const open = this.#open
    if (!open) return ''
    this.#open = null
    return open.type === 'message' ? this.#closeMessage(open, status) : this.#closeReasoning(open, status)
  }

  #closeMessage(open: OpenItem, status: ItemStatus): string {
    this.#show(open)
    const { logprobs } = open
    const part = textPart(open.text, logprobs)
    return (
      this.#event('response.output_text.done', { ...partOf(open), text: open.text, logprobs }) +
      this.#event('response.content_part.done', { ...partOf(open), part }) +
      this.#done(messageItem(this.#head, open.index, [part], status))
    )
  }

  #closeReasoning(open: OpenItem, status: ItemStatus): string {
    const { text } = open
    const item = reasoningItem(this.#head, open.index, text, status)
    if (this.#summary) {
      return (
        this.#event('response.reasoning_summary_text.done', { ...summaryOf(open), text }) +
        this.#event('response.reasoning_summary_part.done', { ...summaryOf(open), part: { type: 'summary_text', text } }) +
        this.#done(item)
      )
    }
    return (
      this.#event('response.reasoning_text.done', { ...partOf(open), text }) +
      this.#event('response.content_part.done', { ...partOf(open), part: { type: 'reasoning_text', text } }) +
      this.#done(item)
    )
  }

  #added(item: object): string {
    return this.#event('response.output_item.added', { output_index: this.#output.length, item })
  }

  #done(item: object): string {
    const text = this.#event('response.output_item.done', { output_index: this.#output.length, item })
    this.#output.push(item)
    return text
  }

  #event(type: string, fields: object): string {
    return namedEvent(type, JSON.stringify({ type, sequence_number: this.#sequence++, ...fields }))
  }

  #lifecycle(type: string, response: string): string {
    return namedEvent(type, `{"type":"${type}","sequence_number":${this.#sequence++},"response":${response}}`)
  }
}

const partOf = ({ id, index }: OpenItem) => ({ item_id: id, output_index: index, content_index: 0 })
const summaryOf = ({ id, index }: OpenItem) => ({ item_id: id, output_index: index, summary_index: 0 })

export const createStream = (head: AnswerHead): StreamEncoder => new ResponsesStream(head)
