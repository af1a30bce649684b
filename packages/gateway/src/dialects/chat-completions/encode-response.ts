import type { FinishReason, Message, ToolCall, Usage } from '@aworld-train/core'
import type { AnswerHead, Completion, StreamPiece } from '../../call.ts'
import type { HttpFailure } from '../../failure.ts'
import { type CompletionEnd, completionEnd } from '../completion-end.ts'
import { tokenLogprobs } from '../token-logprobs.ts'
import { fromCustomArguments } from '../tools-json.ts'

const finishReasons: Readonly<Record<CompletionEnd, string>> = {
  stopped: 'stop',
  calls: 'tool_calls',
  cut: 'length',
  filtered: 'content_filter',
}

export const encodeFinishReason = (reason: FinishReason) => finishReasons[completionEnd(reason)]

export const encodeUsage = ({ promptTokens, completionTokens, cachedTokens }: Usage) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
})

/** Writes a call as clients read it. A call of a tool in `customTools` has the plain text that its arguments hold. */
export function encodeToolCall({ id, name, arguments: text }: ToolCall, customTools: ReadonlySet<string>) {
  if (customTools.has(name)) return { id, type: 'custom', custom: { name, input: fromCustomArguments(text) } }
  return { id, type: 'function', function: { name, arguments: text } }
}

/** `logprobs` of a choice: one entry a sampled token. */
export function encodeLogprobs(head: AnswerHead, piece: Pick<StreamPiece, 'tokenIds' | 'logprobs' | 'logprobEntries'>) {
  return { content: tokenLogprobs(head, piece), refusal: null }
}

function encodeMessage({ content, reasoning, toolCalls }: Message, customTools: ReadonlySet<string>) {
  return {
    role: 'assistant',
    content,
    refusal: null,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(toolCalls && toolCalls.length > 0 && { tool_calls: toolCalls.map((call) => encodeToolCall(call, customTools)) }),
  }
}

/** The body of an answer that is not streamed. */
export function encodeResponse(head: AnswerHead, completion: Completion): string {
  const { message, finishReason, tokenIds, usage, isMalformedCall } = completion
  const { logprobs: wantsLogprobs, tokenIds: wantsTokenIds } = head.call.wants
  return JSON.stringify({
    id: `chatcmpl-${head.id}`,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: encodeMessage(message, head.call.customTools),
        logprobs: wantsLogprobs ? encodeLogprobs(head, completion) : null,
        finish_reason: encodeFinishReason(finishReason),
        ...(wantsTokenIds && { token_ids: Array.from(tokenIds) }),
        ...(isMalformedCall && { malformed_call: true }),
      },
    ],
    usage: encodeUsage(usage),
    ...(wantsTokenIds && { prompt_token_ids: Array.from(head.promptTokenIds) }),
  })
}

/** An error in OpenAI's shape. */
export function encodeFailure({ message, type, code, param }: HttpFailure): string {
  return JSON.stringify({ error: { message, type, param, code } })
}
