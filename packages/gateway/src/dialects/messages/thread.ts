import type { Message } from '@aworld-train/core'
import type { AnswerHead, Completion, ModelCall } from '../../call.ts'
import { badRequest } from '../../failure.ts'
import { memberText } from '../member-text.ts'
import { type Fields, readObject, readString } from '../read-fields.ts'
import type { ResponseMemory } from '../responses/memory.ts'

/** The content of a thread before a call: its messages, and its system prompt and tools as they were written when it began. */
export interface Thread {
  readonly messages: readonly Message[]
  readonly fields: Fields
  readonly json: string
}

/** A call of the Messages dialect. Its answer is kept with `thread` if the client asks for that. */
export interface MessagesCall extends ModelCall {
  readonly thread: { readonly messages: readonly Message[]; readonly json: string } | null
}

const createOnly = ['system', 'tools'] as const

/**
 * Opens the thread that a request creates or continues; `null` if it sends its whole history. The header is `anthropic-beta:
 * message-threads-2026-08-12`, as sent by `toolRunner` and `thread` of @anthropic-ai/sdk 1.12. A client that reads
 * `thread_not_found` sends its whole history.
 */
export function openThread(body: Fields, json: string, memory: ResponseMemory): Thread | null {
  if (body['thread'] === undefined || body['thread'] === null) return null
  const thread = readObject(body['thread'], 'thread')
  const type = readString(thread['type'], 'thread.type')
  if (type === 'create') {
    const members = createOnly.map((name) => `${JSON.stringify(name)}:${memberText(json, name) ?? 'null'}`)
    return { messages: [], fields: body, json: `{${members.join(',')}}` }
  }
  if (type !== 'continue') throw badRequest(`"thread.type" is "${type}"; it must be create or continue.`, 'thread.type')
  const repeated = createOnly.find((name) => body[name] !== undefined && body[name] !== null)
  if (repeated) throw badRequest(`"${repeated}" belongs to the thread and cannot be sent again; create another thread.`, repeated)
  const id = readString(thread['previous_message_id'], 'thread.previous_message_id')
  const stored = memory.get(id)
  if (stored) return { messages: stored.messages, fields: JSON.parse(stored.json) as Fields, json: stored.json }
  const message = `No thread with the message "${id}" is kept here: it belongs to another agent, or was dropped. Send the whole history.`
  throw badRequest(message, 'thread.previous_message_id', 404, 'thread_not_found')
}

/** Keeps an answer for the calls that continue its thread. */
export function keepThread({ id, call, memory }: AnswerHead, { message }: Completion): void {
  const { thread } = call as MessagesCall
  if (thread) memory.set(`msg_${id}`, { messages: [...thread.messages, message], json: thread.json })
}
