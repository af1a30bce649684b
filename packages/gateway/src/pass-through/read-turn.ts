import { type Message, type ReadAnswer, type ReportedCompletion, TrainError } from '@aworld-train/core'
import { decodeMessage } from '../dialects/chat-completions/decode-message.ts'
import type { Fields } from '../dialects/read-fields.ts'
import { recordedFields } from '../stages/recorded-fields.ts'
import type { AnswerToRead, ReadTurn } from './recorder-messages.ts'
import type { TokenPrefixes } from './token-prefixes.ts'
import { unreadFields } from './unread-fields.ts'

/** Reads a message as text, whatever it holds. The server accepted it, so it is no error here. */
function toMessage(value: unknown, index: number): Message {
  try {
    return decodeMessage(value, `messages[${index}]`)
  } catch {
    const { role } = (value ?? {}) as { role?: unknown }
    const messageRole = role === 'system' || role === 'developer' || role === 'assistant' || role === 'tool' ? role : 'user'
    return { role: messageRole, content: JSON.stringify(value) }
  }
}

/** Throws if ids, logprobs and the engine's own count differ in number, because part of the turn would be recorded as all of it. */
function checkLengths({ promptTokenIds, completionTokenIds, rolloutLogprobs, usage }: ReportedCompletion): void {
  const ids = completionTokenIds.length
  const disagreement =
    ids !== rolloutLogprobs.length
      ? `${ids} ids with ${rolloutLogprobs.length} logprobs; every id needs one`
      : ids !== usage.completionTokens
        ? `${ids} ids, and ${usage.completionTokens} sampled tokens in its usage; a parser of it may drop events that have ids`
        : promptTokenIds.length !== usage.promptTokens
          ? `${promptTokenIds.length} ids of the prompt, and ${usage.promptTokens} in its usage`
          : null
  if (disagreement) throw new TrainError('POLICY_RESPONSE_INVALID', `The engine reported ${disagreement}.`)
}

/**
 * Reads one answer, finds its place among the turns of its record and adds it there. Throws as the reader does, and
 * for a request that is no JSON.
 */
export function readTurn(input: AnswerToRead, readAnswer: ReadAnswer, prefixes: TokenPrefixes): ReadTurn {
  const { call, stream, answer, broken } = input
  const completion = readAnswer(answer, stream, broken)
  checkLengths(completion)
  const { promptTokenIds, completionTokenIds, rolloutLogprobs, message, finishReason, usage, weightVersions = [] } = completion
  const { buffer, byteOffset, length } = input.request
  const json = Buffer.from(buffer, byteOffset, length).toString('utf8')
  const request = JSON.parse(json) as Fields
  const messages = (request['messages'] ?? []) as readonly unknown[]
  const isRoot = prefixes.size === 0
  const parent = prefixes.place({ call, promptTokenIds, completionTokenIds, messages: messages.length + 1 })
  const from = parent?.messages ?? 0
  return {
    parent: parent?.call ?? null,
    branchReason: parent ? null : isRoot ? 'root' : 'no-match',
    // Copies can move to another thread.
    suffixTokenIds: promptTokenIds.slice(parent?.length ?? 0),
    completionTokenIds: completionTokenIds.slice(),
    rolloutLogprobs: rolloutLogprobs.slice(),
    messagesDelta: messages.slice(from).map((message, index) => toMessage(message, from + index)),
    message,
    finishReason,
    usage,
    weightVersions,
    ...recordedFields(unreadFields(request, json)),
  }
}
