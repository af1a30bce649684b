import type { AnswerHead } from '../call.ts'

/** One entry a sampled token, as OpenAI writes them; alternatives are not known and stay empty. */
export function tokenLogprobs(head: AnswerHead, tokenIds: ArrayLike<number>, logprobs: ArrayLike<number>) {
  return Array.from(tokenIds, (id, index) => {
    const token = head.tokenText(id)
    return { token, logprob: logprobs[index]!, bytes: [...Buffer.from(token)], top_logprobs: [] }
  })
}
