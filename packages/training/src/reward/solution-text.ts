import type { Episode } from '@aworld-train/core'

/** The text that a positional reward scores. */
export type RewardInputKind = 'answer' | 'full-response'

/** `answer`: the final assistant text; `full-response`: every message after the last of the user, tool text included. */
export function solutionText({ answer, messages }: Episode, kind: RewardInputKind): string {
  if (kind === 'answer') return answer ?? ''
  const start = messages.findIndex(({ role }) => role === 'assistant' || role === 'tool')
  if (start < 0) return answer ?? ''
  return messages
    .slice(start)
    .map(({ content, toolCalls }) =>
      [content ?? '', ...(toolCalls ?? []).map((call) => `${call.name}(${call.arguments})`)].filter(Boolean).join('\n'),
    )
    .join('\n')
}
