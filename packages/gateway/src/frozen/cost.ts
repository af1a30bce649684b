import type { Message, Usage } from '@aworld-train/protocol'
import type { ModelCall } from '../call.ts'
import type { FrozenPrice } from '../models/routes.ts'

/** US dollars of a call; cached tokens are part of the prompt's. */
export function costOf(
  { promptTokens, completionTokens, cachedTokens }: Usage,
  { input, output, cachedInput = input }: FrozenPrice,
): number {
  const cached = Math.min(cachedTokens, promptTokens)
  return ((promptTokens - cached) * input + cached * cachedInput + completionTokens * output) / 1_000_000
}

/** Text that is taken for a token where a third party does not say how many it used. */
const charactersPerToken = 4

function tokensOf(messages: readonly Message[], more = 0): number {
  const lengths = messages.map(({ content, reasoning, toolCalls = [] }) =>
    toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, (content?.length ?? 0) + (reasoning?.length ?? 0)),
  )
  return Math.ceil(lengths.reduce((sum, length) => sum + length, more) / charactersPerToken)
}

/** What a call is likely to have used, so that a budget holds before a third party that does not say; `null` for a call that is not understood, `saidCharacters` of an answer that broke off. */
export const estimatedUsage = (
  call: Pick<ModelCall, 'messages' | 'toolsJson'> | null,
  answer: readonly Message[],
  saidCharacters = 0,
): Usage => ({
  promptTokens: call ? tokensOf(call.messages, call.toolsJson?.length) : 0,
  completionTokens: tokensOf(answer, saidCharacters),
  cachedTokens: 0,
})
