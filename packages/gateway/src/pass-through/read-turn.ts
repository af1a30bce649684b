import type { ReadAnswer, ReportedCompletion } from '@aworld-train/core'
import { type Message, TrainError } from '@aworld-train/protocol'
import { decodeMessage } from '../dialects/chat-completions/decode-message.ts'
import { findArrayMember } from '../json/scan-members.ts'
import { recordedFields } from '../stages/recorded-fields.ts'
import { isStream } from './pass-on.ts'
import type { AnswerToRead, ReadTurn } from './recorder-messages.ts'
import type { TokenPrefixes } from './token-prefixes.ts'
import { unreadFields } from './unread-fields.ts'

const toBuffer = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length)

/** A request, of which only what is asked for is parsed. */
interface ReadRequest {
  readonly messages: number
  messagesFrom(index: number): readonly unknown[]
  unusedFields(): Record<string, string>
}

function readRequest(request: Uint8Array): ReadRequest {
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
    unusedFields: () => unreadFields(bytes, text, found),
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

/** Reads one answer and finds its place among the turns of its record, to which it is added. Throws what the reader throws. */
export function readTurn(given: AnswerToRead, readAnswer: ReadAnswer, prefixes: TokenPrefixes): ReadTurn {
  const { call, contentType, answer, broken } = given
  const completion = readAnswer(answer, isStream(contentType), contentType, broken)
  checkLengths(completion)
  const { promptTokenIds, completionTokenIds, rolloutLogprobs, message, finishReason, usage, weightVersions = [] } = completion
  const request = readRequest(given.request)
  const isRoot = prefixes.size === 0
  const messages = request.messages + 1
  const parent = prefixes.place({ call, promptTokenIds, completionTokenIds, messages })
  const from = parent?.messages ?? 0
  return {
    parent: parent?.call ?? null,
    branchReason: parent ? null : isRoot ? 'root' : 'no-match',
    // Copies, which can move to another thread.
    suffixTokenIds: promptTokenIds.slice(parent?.length ?? 0),
    completionTokenIds: completionTokenIds.slice(),
    rolloutLogprobs: rolloutLogprobs.slice(),
    messagesDelta: request.messagesFrom(from).map((message, index) => toMessage(message, from + index)),
    message,
    finishReason,
    usage,
    weightVersions,
    ...recordedFields(request.unusedFields()),
  }
}
