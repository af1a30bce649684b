import type { Usage } from '@aworld-train/protocol'
import type { FrozenPrice } from '../models/routes.ts'

/** US dollars of a call; cached tokens are part of the prompt's. */
export function costOf(
  { promptTokens, completionTokens, cachedTokens }: Usage,
  { input, output, cachedInput = input }: FrozenPrice,
): number {
  const cached = Math.min(cachedTokens, promptTokens)
  return ((promptTokens - cached) * input + cached * cachedInput + completionTokens * output) / 1_000_000
}
