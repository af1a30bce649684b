import type { Usage } from '@aworld-train/protocol'
import type { AnswerHead, Completion } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { tokenLogprobs } from '../token-logprobs.ts'
import { callOf, encodeItems, incompleteReason, itemStatus } from './encode-items.ts'

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

/** The response object in one state of its life, as JSON. */
export function encodeResponseObject(head: AnswerHead, { status, output, completion, failure }: ResponseParts): string {
  const json = JSON.stringify({
    id: `resp_${head.id}`,
    object: 'response',
    created_at: head.created,
    status,
    error: failure ? { code: failure.code, message: failure.message } : null,
    incomplete_details: status === 'incomplete' && completion ? { reason: incompleteReason(completion) } : null,
    model: head.model,
    output,
    usage: completion ? encodeUsage(completion.usage) : null,
    ...(completion &&
      head.call.wants.tokenIds && {
        prompt_token_ids: Array.from(head.promptTokenIds),
        token_ids: Array.from(completion.tokenIds),
      }),
  })
  return `${json.slice(0, -1)},${callOf(head).responses.echo}}`
}

/** Keeps an answer for calls that refer to it, where the request does not forbid it. */
export function remember(head: AnswerHead, { message }: Completion, json: string): void {
  const { store, messages } = callOf(head).responses
  if (store) head.memory.set(`resp_${head.id}`, { messages: [...messages, message], json })
}

export const finalStatus = (completion: Completion): ResponseStatus => (incompleteReason(completion) === null ? 'completed' : 'incomplete')

/** Logprobs of all sampled tokens, where the request includes them: they stand on the first text. */
export function includedLogprobs(head: AnswerHead, { tokenIds, logprobs }: Completion): readonly object[] {
  return head.call.wants.logprobs ? tokenLogprobs(head, tokenIds, logprobs) : []
}

/** The body of an answer that is not streamed. */
export function encodeResponse(head: AnswerHead, completion: Completion): string {
  const output = encodeItems(head, completion.message, itemStatus(completion), includedLogprobs(head, completion))
  const json = encodeResponseObject(head, { status: finalStatus(completion), output, completion })
  remember(head, completion, json)
  return json
}
