import type { Usage } from '@aworld-train/core'
import type { AnswerHead, Completion, StreamPiece } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { tokenLogprobs } from '../token-logprobs.ts'
import { callOf, encodeItems, incompleteReason, itemStatus } from './encode-items.ts'
import { wholeJson } from './memory.ts'

export type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed'

const encodeUsage = ({ promptTokens, completionTokens, cachedTokens }: Usage) => ({
  input_tokens: promptTokens,
  input_tokens_details: { cached_tokens: cachedTokens },
  output_tokens: completionTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: promptTokens + completionTokens,
})

export interface ResponseParts {
  readonly status: ResponseStatus
  readonly output: readonly object[]
  readonly completion?: Completion | undefined
  readonly failure?: HttpFailure | undefined
}

/** The response object in one state of its life, as JSON, without the members that repeat the request. */
function encodeOwnMembers(head: AnswerHead, { status, output, completion, failure }: ResponseParts): string {
  return JSON.stringify({
    id: `resp_${head.id}`,
    object: 'response',
    created_at: head.created,
    status,
    error: failure ? { code: failure.code, message: failure.message } : null,
    incomplete_details: status === 'incomplete' && completion ? { reason: incompleteReason(completion) } : null,
    model: head.model,
    previous_response_id: callOf(head).responses.previous,
    output,
    usage: completion ? encodeUsage(completion.usage) : null,
    ...(completion &&
      head.call.wants.tokenIds && {
        prompt_token_ids: Array.from(head.promptTokenIds),
        token_ids: Array.from(completion.tokenIds),
      }),
  })
}

/** The response object in one state of its life, as JSON. */
export function encodeResponseObject(head: AnswerHead, parts: ResponseParts): string {
  return wholeJson({ json: encodeOwnMembers(head, parts), echo: callOf(head).responses.echo })
}

export const finalStatus = (completion: Completion): ResponseStatus => (incompleteReason(completion) === null ? 'completed' : 'incomplete')

/** Logprobs of all sampled tokens, if the request includes them. The first text carries them all. */
export function includedLogprobs(
  head: AnswerHead,
  piece: Pick<StreamPiece, 'tokenIds' | 'logprobs' | 'logprobEntries'>,
): readonly object[] {
  return head.call.wants.logprobs ? tokenLogprobs(head, piece) : []
}

/** The response object of a finished completion. It is kept for calls that refer to it, unless the request forbids that. */
export function encodeFinished(head: AnswerHead, completion: Completion, output: readonly object[]): string {
  const { store, messages, echo } = callOf(head).responses
  const json = encodeOwnMembers(head, { status: finalStatus(completion), output, completion })
  const stored = { messages: [...messages, completion.message], json, echo }
  if (store) head.memory.set(`resp_${head.id}`, stored)
  return wholeJson(stored)
}

/** The body of an answer that is not streamed. */
export function encodeResponse(head: AnswerHead, completion: Completion): string {
  const output = encodeItems(head, completion.message, itemStatus(completion), includedLogprobs(head, completion))
  return encodeFinished(head, completion, output)
}
