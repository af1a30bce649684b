import type { AnswerHead, RequestedLogprobs, StreamPiece } from '../call.ts'
import { badRequest } from '../failure.ts'
import { shown } from './read-fields.ts'

/** Most alternatives that OpenAI's APIs give. */
const maxTop = 20

/** `top_logprobs` of a request: 0 where it is missing. */
export function readTopLogprobs(value: unknown): number {
  if (value === undefined || value === null) return 0
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTop) return value as number
  throw badRequest(`"top_logprobs" is ${shown(value)}; it must be a whole number from 0 to ${maxTop}.`, 'top_logprobs')
}

/** Throws GATEWAY_BAD_REQUEST if a request asks for more than the logprobs of sampled tokens. */
export function refuseAlternatives(logprobs: RequestedLogprobs | null): void {
  if (!logprobs || logprobs.top === 0) return
  const message = `"top_logprobs" is ${logprobs.top}; this model's engine reports the logprobs of sampled tokens alone. Send 0, or leave it out.`
  throw badRequest(message, 'top_logprobs')
}

/** One entry for each sampled token, as OpenAI writes them: the server's own, else without alternatives. */
export function tokenLogprobs(
  head: AnswerHead,
  { tokenIds, logprobs, logprobEntries }: Pick<StreamPiece, 'tokenIds' | 'logprobs' | 'logprobEntries'>,
): readonly object[] {
  if (logprobEntries) return logprobEntries
  return Array.from(tokenIds, (id, index) => {
    const token = head.tokenText(id)
    return { token, logprob: logprobs[index]!, bytes: [...Buffer.from(token)], top_logprobs: [] }
  })
}
