import type { CompletionDelta } from '@aworld-train/chat'
import type { AnswerHead, Completion, StreamEncoder, StreamPiece } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { encodeFailure, encodeFinishReason, encodeLogprobs, encodeToolCall, encodeUsage } from './encode-response.ts'

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`

function chunk(head: AnswerHead, choices: readonly object[], extra?: object) {
  const { created, model, call } = head
  const id = `chatcmpl-${head.id}`
  const usage = call.wants.streamUsage ? { usage: null } : undefined
  return event({ id, object: 'chat.completion.chunk', created, model, choices, ...usage, ...extra })
}

const choice = (delta: object, finishReason: string | null = null, extra?: object) => ({
  index: 0,
  delta,
  logprobs: null,
  finish_reason: finishReason,
  ...extra,
})

function toDelta(delta: CompletionDelta, customTools: ReadonlySet<string>): object {
  if (delta.type === 'content') return { content: delta.text }
  if (delta.type === 'reasoning') return { reasoning_content: delta.text }
  return { tool_calls: [{ index: delta.index, ...encodeToolCall(delta.call, customTools) }] }
}

/** The first event: the role and, if asked for, the prompt's ids. */
function encodeStart(head: AnswerHead): string {
  const ids = head.call.wants.tokenIds ? { prompt_token_ids: Array.from(head.promptTokenIds) } : undefined
  return chunk(head, [choice({ role: 'assistant', content: '' })], ids)
}

/** The events of one piece. The first carries the logprobs and ids; a piece that only holds text back gets one event for them. */
function encodePiece(head: AnswerHead, piece: StreamPiece): string {
  const { deltas, tokenIds, logprobEntries } = piece
  const { logprobs: wantsLogprobs, tokenIds: wantsTokenIds } = head.call.wants
  const extra = {
    ...(wantsLogprobs && { logprobs: encodeLogprobs(head, piece) }),
    ...(wantsTokenIds && { token_ids: Array.from(tokenIds) }),
  }
  const carries = ((wantsLogprobs || wantsTokenIds) && tokenIds.length > 0) || (wantsLogprobs && (logprobEntries?.length ?? 0) > 0)
  if (deltas.length === 0) return carries ? chunk(head, [choice({}, null, extra)]) : ''
  return deltas
    .map((delta, index) => chunk(head, [choice(toDelta(delta, head.call.customTools), null, carries && index === 0 ? extra : undefined)]))
    .join('')
}

/** The finish reason, the usage if asked for, and the end mark. */
function encodeEnd(head: AnswerHead, { finishReason, usage }: Completion): string {
  const last = chunk(head, [choice({}, encodeFinishReason(finishReason))])
  const counted = head.call.wants.streamUsage ? chunk(head, [], { usage: encodeUsage(usage) }) : ''
  return `${last}${counted}data: [DONE]\n\n`
}

/** An error in a stream whose headers are sent. Clients read the member `error` of an event. */
export function encodeStreamFailure(failure: HttpFailure): string {
  return `data: ${encodeFailure(failure)}\n\n`
}

/** Writes chunks of Chat Completions. No state is kept from one event to the next. */
export const createStream = (head: AnswerHead): StreamEncoder => ({
  start: () => encodeStart(head),
  piece: (piece) => encodePiece(head, piece),
  end: (completion) => encodeEnd(head, completion),
  fail: encodeStreamFailure,
})
