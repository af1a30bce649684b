import type { ReadAnswer, ReaderMemory, ReportedCompletion } from '@aworld-train/core'
import { type Message, TrainError } from '@aworld-train/protocol'
import { decodeMessage } from '../dialects/chat-completions/decode-message.ts'
import { scanArrayMember } from '../json/scan-members.ts'
import { isStream } from './pass-on.ts'
import type { ReadTurn, RecordedBytes } from './recorder-protocol.ts'
import type { TokenPrefixes } from './token-prefixes.ts'

/** A turn, and how many of its prompt ids are prompt and completion of its parent. */
export interface ReadAnswerTurn extends ReadTurn {
  readonly prefixTokens: number
}

/** The messages of a request, of which only those asked for are parsed. */
interface RequestMessages {
  readonly count: number
  from(index: number): readonly unknown[]
}

function requestMessages(request: Uint8Array): RequestMessages {
  const bytes = Buffer.from(request.buffer, request.byteOffset, request.length)
  const spans = scanArrayMember(bytes.toString('latin1'), 'messages') ?? []
  return {
    count: spans.length,
    from(index) {
      const [first, last] = [spans[index], spans.at(-1)]
      return first && last ? (JSON.parse(`[${bytes.toString('utf8', first[0], last[1])}]`) as unknown[]) : []
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

/** Reads one answer and finds its place among the calls of its record, to which it is added. Throws what the reader throws. */
export function readTurn(given: RecordedBytes, read: ReadAnswer, { prefixes, memory }: KnownRecord): ReadAnswerTurn {
  const { call, contentType, request, answer } = given
  const completion = read(answer, isStream(contentType), contentType, memory)
  checkLengths(completion)
  const { promptTokenIds, completionTokenIds, repeatedTokens = 0 } = completion
  const messages = requestMessages(request)
  const isRoot = prefixes.size === 0
  const placed = { call, promptTokenIds, completionTokenIds, messages: messages.count + 1, repeated: repeatedTokens }
  const parent = prefixes.place(placed)
  const from = parent?.messages ?? 0
  const messagesDelta = messages.from(from).map((message, index) => toMessage(message, from + index))
  const branchReason = parent ? null : isRoot ? 'root' : 'no-match'
  return { call, completion, parent: parent?.call ?? null, prefixTokens: parent?.length ?? 0, branchReason, messagesDelta }
}
