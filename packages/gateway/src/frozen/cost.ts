import type { Message, Usage } from '@aworld-train/core'
import type { ModelCall } from '../call.ts'
import type { FrozenPrice } from '../models/routes.ts'

/** US dollars of a call. Cached tokens are part of the prompt's. */
export function costOf(
  { promptTokens, completionTokens, cachedTokens }: Usage,
  { input, output, cachedInput = input }: FrozenPrice,
): number {
  const cached = Math.min(cachedTokens, promptTokens)
  return ((promptTokens - cached) * input + cached * cachedInput + completionTokens * output) / 1_000_000
}

/** Characters that count as one token if a third party does not report usage. */
const charactersPerToken = 4

function tokensOf(messages: readonly Message[], more = 0): number {
  const lengths = messages.map(({ content, reasoning, toolCalls = [] }) =>
    toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, (content?.length ?? 0) + (reasoning?.length ?? 0)),
  )
  return Math.ceil(lengths.reduce((sum, length) => sum + length, more) / charactersPerToken)
}

/**
 * Estimates the usage of a call, so that budgets work with third parties that do not report it. `call` is `null` if the request is not
 * understood. `saidCharacters` is the length of an answer that broke off.
 */
export const estimatedUsage = (
  call: Pick<ModelCall, 'messages' | 'toolsJson'> | null,
  answer: readonly Message[],
  saidCharacters = 0,
): Usage => ({
  promptTokens: call ? tokensOf(call.messages, call.toolsJson?.length) : 0,
  completionTokens: tokensOf(answer, saidCharacters),
  cachedTokens: 0,
})
