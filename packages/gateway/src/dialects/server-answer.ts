import type { CompletionDelta } from '@aworld-train/chat'
import { createEventReader, type Message, type ServerEvent, type ToolCall, TrainError } from '@aworld-train/core'
import type { Completion, StreamPiece } from '../call.ts'
import type { Fields } from './read-fields.ts'

/** A model server's answer, whatever dialect it speaks. */
export interface ServerAnswer {
  readonly id: string | null
  /** The model as the server names it. */
  readonly model: string | null
  /** Ids and logprobs are empty where the server reports none. */
  readonly completion: Completion
  /** Empty where the server reports none. */
  readonly promptTokenIds: Int32Array
}

/** Reads the events of one streamed answer, in chunks as they arrive. */
export interface AnswerDecoder {
  /** Returns the deltas in a chunk; a call comes when its arguments are whole. Throws POLICY_RESPONSE_INVALID, also for an error event. */
  push(chunk: Uint8Array): StreamPiece | null
  /** Returns the last deltas and the whole answer. Throws POLICY_RESPONSE_INVALID for a stream that ended before its finish reason. */
  finish(): { readonly piece: StreamPiece | null; readonly answer: ServerAnswer }
}

/** The error for an answer that does not fit its format. */
export function invalidAnswer(what: string, cause?: unknown): TrainError {
  return new TrainError('POLICY_RESPONSE_INVALID', `The model server's answer ${what}; check its address and which API it serves.`, {
    cause,
  })
}

/** Runs `read`, and turns any error into one that says that the answer cannot be read. */
export function readingAnswer<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof TrainError && cause.code === 'POLICY_RESPONSE_INVALID') throw cause
    throw invalidAnswer(`cannot be read: ${cause instanceof Error ? cause.message : cause}`, cause)
  }
}

export const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

export const countOf = (value: unknown) => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0)

export const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

/** An assistant message without its empty members. */
export function toMessage(content: string | null, reasoning: string, toolCalls: readonly ToolCall[]): Message {
  return { role: 'assistant', content, ...(reasoning !== '' && { reasoning }), ...(toolCalls.length > 0 && { toolCalls: [...toolCalls] }) }
}

/** The part of an answer that has arrived so far. */
export interface AnswerText {
  content: string | null
  reasoning: string
  readonly calls: ToolCall[]
}

/** Reads the events of a stream as JSON objects and gathers their deltas. `readEvent` adds to `deltas`. */
export function createAnswerDecoder(
  readEvent: (event: Fields, deltas: CompletionDelta[]) => void,
  tokens: { readonly ids: number[]; readonly logprobs: number[]; readonly entries?: object[] },
  finish: () => ServerAnswer,
): AnswerDecoder {
  const events = createEventReader()

  function read(serverEvents: readonly ServerEvent[]): StreamPiece | null {
    const deltas: CompletionDelta[] = []
    const [ids, values] = [tokens.ids.length, tokens.logprobs.length]
    for (const { data: text } of serverEvents) {
      if (text === '[DONE]') continue
      const event = readingAnswer(() => JSON.parse(text) as unknown)
      if (typeof event !== 'object' || event === null) throw invalidAnswer('has an event that is not an object')
      readingAnswer(() => readEvent(event as Fields, deltas))
    }
    if (deltas.length === 0 && tokens.ids.length === ids && tokens.logprobs.length === values) return null
    const logprobEntries = tokens.entries?.slice(values)
    return { deltas, tokenIds: tokens.ids.slice(ids), logprobs: tokens.logprobs.slice(values), logprobEntries }
  }

  return {
    push: (chunk) => read(events.push(chunk)),
    finish() {
      const piece = read(events.finish())
      return { piece, answer: finish() }
    },
  }
}
