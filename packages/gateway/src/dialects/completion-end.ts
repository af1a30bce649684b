import type { FinishReason } from '@aworld-train/protocol'

/** How a client is told that a completion ended. */
export type CompletionEnd = 'stopped' | 'calls' | 'cut' | 'filtered'

/** Finish reasons with which third parties say that they withheld an answer. */
const filtered: ReadonlySet<string> = new Set(['content_filter', 'refusal'])

/** How the end of a completion is reported to a client. An incomplete completion is never reported as complete. */
export function completionEnd({ unified, raw }: FinishReason): CompletionEnd {
  if (unified === 'tool-calls') return 'calls'
  if (unified !== 'stop') return 'cut'
  return filtered.has(raw) ? 'filtered' : 'stopped'
}
