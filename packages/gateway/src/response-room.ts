import type { PreparedPrompt } from '@aworld-train/chat'
import type { SessionRequest, Turn } from '@aworld-train/core'

/** Tokens that a conversation may still have, counted from the first token that was sampled in it. */
export function responseRoom(
  turns: readonly Turn[],
  { parent, promptTokenIds }: Pick<PreparedPrompt, 'parent' | 'promptTokenIds'>,
  { maxResponseTokens }: Pick<SessionRequest, 'maxResponseTokens'>,
): number {
  if (maxResponseTokens === undefined) return Number.POSITIVE_INFINITY
  let start = promptTokenIds.length
  for (let turn = parent === null ? undefined : turns[parent]; turn; turn = turn.parent === null ? undefined : turns[turn.parent])
    start = turn.promptTokenIds.length
  return maxResponseTokens - (promptTokenIds.length - start)
}
