import type { ReadAnswer } from '@aworld-train/core'
import { type ReadTokens, readChatAnswer, type WireChoice } from '../engine/chat-answer.ts'
import { type SglangMeta, toSglangSpans } from './sglang-meta.ts'

/** `choices[].meta_info` and `choices[].prompt_token_ids`, as SGLang's serving_chat.py writes them. */
const readTokens: ReadTokens = (_answer, choice) => {
  const sglangChoice = choice as (WireChoice & { meta_info?: SglangMeta | null; prompt_token_ids?: readonly number[] | null }) | undefined
  const pairs = sglangChoice?.meta_info?.output_token_logprobs
  return {
    promptTokenIds: sglangChoice?.prompt_token_ids,
    tokenIds: pairs?.map(([, id]) => id),
    logprobs: pairs?.map(([logprob]) => logprob),
    weightVersions: sglangChoice?.meta_info ? toSglangSpans(sglangChoice.meta_info) : undefined,
  }
}

/** Reads a Chat Completions answer of SGLang that was asked with `return_meta_info`, `return_prompt_token_ids` and `logprobs`. */
export const readAnswer: ReadAnswer = (body, stream, broken) => readChatAnswer({ server: 'SGLang', body, stream, readTokens, broken })
