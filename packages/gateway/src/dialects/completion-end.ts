import type { FinishReason } from '@aworld-train/protocol'

/** How a client is told that a completion ended. */
export type CompletionEnd = 'stopped' | 'calls' | 'cut' | 'filtered'

/** Words with which third parties say that they held an answer back. */
const filtered: ReadonlySet<string> = new Set(['content_filter', 'refusal'])

/** What has not come to its end is never told as if it had: whatever broke it off, it was cut. */
export function completionEnd({ unified, raw }: FinishReason): CompletionEnd {
  if (unified === 'tool-calls') return 'calls'
  if (unified !== 'stop') return 'cut'
  return filtered.has(raw) ? 'filtered' : 'stopped'
}
