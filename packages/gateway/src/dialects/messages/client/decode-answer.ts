import type { CompletionDelta } from '@aworld-train/chat'
import type { FinishReason, ToolCall, Usage } from '@aworld-train/core'
import type { Completion } from '../../../call.ts'
import { itemTexts, memberText } from '../../member-text.ts'
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

const finishReasons: ReadonlyMap<string, FinishReason['unified']> = new Map([
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
])

function decodeUsage(value: unknown): Usage {
  const usage = fieldsOf(value)
  const cachedTokens = countOf(usage['cache_read_input_tokens'])
  const promptTokens = countOf(usage['input_tokens']) + countOf(usage['cache_creation_input_tokens']) + cachedTokens
  return { promptTokens, completionTokens: countOf(usage['output_tokens']), cachedTokens }
}

/** Members that end an answer, whether it is whole or streamed. */
interface AnswerEnd {
  readonly id: string | null
  readonly model: string | null
  readonly raw: string
  readonly stopSequence: unknown
  readonly usage: Usage
}

function toAnswer({ content, reasoning, calls }: AnswerText, { id, model, raw, stopSequence, usage }: AnswerEnd): ServerAnswer {
  const completion: Completion = {
    message: toMessage(content, reasoning, calls),
    finishReason: { unified: finishReasons.get(raw) ?? (calls.length > 0 ? 'tool-calls' : 'stop'), raw },
    tokenIds: new Int32Array(0),
    logprobs: new Float32Array(0),
    usage,
    ...(typeof stopSequence === 'string' && { stopSequence }),
  }
  return { id, model, completion, promptTokenIds: new Int32Array(0) }
}

/** `written` is the JSON of the block as it was written. */
function readBlock(block: Fields, written: string, text: AnswerText): void {
  if (block['type'] === 'text') text.content = (text.content ?? '') + (textOf(block['text']) ?? '')
  else if (block['type'] === 'thinking') text.reasoning += textOf(block['thinking']) ?? ''
  else if (block['type'] === 'tool_use') {
    const input = block['input'] ? (memberText(written, 'input') ?? '{}') : '{}'
    text.calls.push({ id: textOf(block['id']) ?? '', name: textOf(block['name']) ?? '', arguments: input })
  }
}

/** Reads a whole answer of a Messages server. Blocks that are not text, thinking or calls are left out. Throws POLICY_RESPONSE_INVALID. */
export function decodeMessagesAnswer(json: string): ServerAnswer {
  return readingAnswer(() => {
    const body = readObject(JSON.parse(json), 'body')
    const text: AnswerText = { content: null, reasoning: '', calls: [] }
    const blocks = itemTexts(memberText(json, 'content') ?? '[]')
    for (const [index, block] of readArray(body['content'], 'content').entries()) {
      readBlock(readObject(block, `content[${index}]`), blocks[index] ?? '{}', text)
    }
    return toAnswer(text, {
      id: textOf(body['id']) ?? null,
      model: textOf(body['model']) ?? null,
      raw: textOf(body['stop_reason']) ?? 'end_turn',
      stopSequence: body['stop_sequence'],
      usage: decodeUsage(body['usage']),
    })
  })
}

/** Gathers the events of one answer. */
class MessagesEvents {
  readonly #text: AnswerText = { content: null, reasoning: '', calls: [] }
  readonly #open = new Map<unknown, ToolCall>()
  #usage: Fields = {}
  #id: string | null = null
  #model: string | null = null
  #raw: string | null = null
  #stopSequence: unknown

  read(event: Fields, deltas: CompletionDelta[]): void {
    const { type, index } = event
    if (type === 'error')
      throw invalidAnswer(`is an error: ${textOf(fieldsOf(event['error'])['message']) ?? JSON.stringify(event['error'])}`)
    if (type === 'message_start') this.#start(fieldsOf(event['message']))
    else if (type === 'content_block_start') this.#begin(index, fieldsOf(event['content_block']))
    else if (type === 'content_block_delta') this.#delta(index, fieldsOf(event['delta']), deltas)
    else if (type === 'content_block_stop') this.#close(index, deltas)
    else if (type === 'message_delta') this.#end(event)
  }

  answer(): ServerAnswer {
    if (this.#raw === null) throw invalidAnswer('ended before its stop reason')
    const usage = decodeUsage(this.#usage)
    return toAnswer(this.#text, { id: this.#id, model: this.#model, raw: this.#raw, stopSequence: this.#stopSequence, usage })
  }

  #start(message: Fields): void {
    this.#id = textOf(message['id']) ?? null
    this.#model = textOf(message['model']) ?? null
    this.#usage = fieldsOf(message['usage'])
  }

  #begin(index: unknown, block: Fields): void {
    if (block['type'] !== 'tool_use') return
    this.#open.set(index, { id: textOf(block['id']) ?? '', name: textOf(block['name']) ?? '', arguments: '' })
  }

  #delta(index: unknown, delta: Fields, deltas: CompletionDelta[]): void {
    const content = textOf(delta['text'])
    const thought = textOf(delta['thinking'])
    const call = this.#open.get(index)
    if (content) {
      this.#text.content = (this.#text.content ?? '') + content
      deltas.push({ type: 'content', text: content })
    } else if (thought) {
      this.#text.reasoning += thought
      deltas.push({ type: 'reasoning', text: thought })
    } else if (call) {
      call.arguments += textOf(delta['partial_json']) ?? ''
    }
  }

  #close(index: unknown, deltas: CompletionDelta[]): void {
    const call = this.#open.get(index)
    if (!call) return
    this.#open.delete(index)
    call.arguments ||= '{}'
    deltas.push({ type: 'tool-call', call: { ...call }, index: this.#text.calls.length })
    this.#text.calls.push(call)
  }

  #end(event: Fields): void {
    const delta = fieldsOf(event['delta'])
    this.#raw = textOf(delta['stop_reason']) ?? this.#raw
    this.#stopSequence = delta['stop_sequence']
    this.#usage = { ...this.#usage, ...fieldsOf(event['usage']) }
  }
}

/** A decoder for one streamed answer of a Messages server. It needs no closing. */
export function createMessagesStreamDecoder(): AnswerDecoder {
  const events = new MessagesEvents()
  return createAnswerDecoder(
    (event, deltas) => events.read(event, deltas),
    { ids: [], logprobs: [] },
    () => events.answer(),
  )
}
