import type { ReadAnswer, ReaderMemory, ReportedCompletion } from '@aworld-train/core'
import { type Message, TrainError } from '@aworld-train/protocol'
import { decodeMessage } from '../dialects/chat-completions/decode-message.ts'
import { findArrayMember } from '../json/scan-members.ts'
import { isStream } from './pass-on.ts'
import type { ReadTurn, RecordedBytes } from './recorder-protocol.ts'
import type { TokenPrefixes } from './token-prefixes.ts'
import { unreadFields } from './unread-fields.ts'

const toBuffer = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length)

/** A request, of which only what is asked for is parsed. */
interface ReadRequest {
  readonly messages: number
  messagesFrom(index: number): readonly unknown[]
  unusedFields(): Record<string, string>
}

function readRequest({ request, unusedFields }: Pick<RecordedBytes, 'request' | 'unusedFields'>): ReadRequest {
  const bytes = toBuffer(request)
  const text = bytes.toString('latin1')
  const found = findArrayMember(text, 'messages')
  const spans = found?.elements ?? []
  return {
    messages: spans.length,
    messagesFrom(index) {
      const [first, last] = [spans[index], spans.at(-1)]
      return first && last ? (JSON.parse(`[${bytes.toString('utf8', first[0], last[1])}]`) as unknown[]) : []
    },
    unusedFields() {
      if (unusedFields.length === 0) return unreadFields(bytes, text, found)
      return JSON.parse(toBuffer(unusedFields).toString('utf8')) as Record<string, string>
    },
  }
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

/** What is known of one record: its calls, and what the reader keeps of the last answer. */
export interface KnownRecord {
  readonly prefixes: TokenPrefixes
  readonly memory: ReaderMemory
}

/** Reads one answer and finds its place among the turns of its record, to which it is added. Throws what the reader throws. */
export function readTurn(given: RecordedBytes, read: ReadAnswer, { prefixes, memory }: KnownRecord): ReadTurn {
  const { index, contentType, answer, broken } = given
  const completion = read(answer, isStream(contentType), contentType, memory, broken)
  checkLengths(completion)
  const { promptTokenIds, completionTokenIds, repeatedTokens = 0 } = completion
  const request = readRequest(given)
  const isRoot = prefixes.size === 0
  const placed = { call: index, promptTokenIds, completionTokenIds, messages: request.messages + 1, repeated: repeatedTokens }
  const parent = prefixes.place(placed)
  const from = parent?.messages ?? 0
  const messagesDelta = request.messagesFrom(from).map((message, index) => toMessage(message, from + index))
  const branchReason = parent ? null : isRoot ? 'root' : 'no-match'
  return {
    completion,
    parent: parent?.call ?? null,
    prefixTokens: parent?.length ?? 0,
    branchReason,
    messagesDelta,
    unusedFields: request.unusedFields(),
  }
}
