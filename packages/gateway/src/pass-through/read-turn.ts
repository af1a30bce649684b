import type { ReadAnswer, ReportedCompletion } from '@aworld-train/core'
import { type Message, TrainError } from '@aworld-train/protocol'
import { decodeMessage } from '../dialects/chat-completions/decode-message.ts'
import { isStream } from './pass-on.ts'
import type { ReadTurn, RecordedBytes } from './recorder-protocol.ts'
import type { TokenPrefixes } from './token-prefixes.ts'

function requestMessages(body: Uint8Array): readonly unknown[] {
  const { messages } = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8')) as { messages?: unknown }
  return Array.isArray(messages) ? messages : []
}

/** The text of a message whatever else it holds: the server took it, so it is no error here. */
function toMessage(value: unknown, index: number): Message {
  try {
    return decodeMessage(value, `messages[${index}]`)
  } catch {
    const { role } = (value ?? {}) as { role?: unknown }
    const known = role === 'system' || role === 'developer' || role === 'assistant' || role === 'tool' ? role : 'user'
    return { role: known, content: JSON.stringify(value) }
  }
}

function checkLengths({ completionTokenIds, rolloutLogprobs }: ReportedCompletion): void {
  if (completionTokenIds.length === rolloutLogprobs.length) return
  const message = `The engine reported ${completionTokenIds.length} ids with ${rolloutLogprobs.length} logprobs; every id needs one.`
  throw new TrainError('POLICY_RESPONSE_INVALID', message)
}

/** Reads one answer and finds its place among the calls of its record, to which it is added. Throws what the reader throws. */
export function readTurn({ call, contentType, request, answer }: RecordedBytes, read: ReadAnswer, known: TokenPrefixes): ReadTurn {
  const completion = read(answer, isStream(contentType), contentType)
  checkLengths(completion)
  const messages = requestMessages(request)
  const parent = known.match(completion.promptTokenIds)
  const branchReason = parent ? null : known.size === 0 ? 'root' : 'no-match'
  known.add(call, completion.promptTokenIds, completion.completionTokenIds, messages.length + 1)
  const from = parent?.messages ?? 0
  const messagesDelta = messages.slice(from).map((message, index) => toMessage(message, from + index))
  return { call, completion, parent: parent?.call ?? null, branchReason, messagesDelta }
}
