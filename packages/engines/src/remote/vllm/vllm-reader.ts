import type { ReadAnswer } from '@aworld-train/core'
import { type ReadTokens, readChatAnswer, type WireChoice } from '../engine/chat-answer.ts'

/** Ids are on the top level or in the choice; vLLM 0.32 does both. */
const readTokens: ReadTokens = (answer, choice) => {
  const top = answer as { readonly prompt_token_ids?: readonly number[] | null }
  const vllmChoice = choice as
    | (WireChoice & { token_ids?: readonly number[] | null; prompt_token_ids?: readonly number[] | null })
    | undefined
  return {
    promptTokenIds: top.prompt_token_ids ?? vllmChoice?.prompt_token_ids,
    tokenIds: vllmChoice?.token_ids,
    logprobs: vllmChoice?.logprobs?.content?.map(({ logprob }) => logprob),
  }
}

/** Reads a Chat Completions answer of vLLM that was asked with `return_token_ids` and `logprobs`. */
export const readAnswer: ReadAnswer = (body, stream, broken) => readChatAnswer({ server: 'vLLM', body, stream, readTokens, broken })
