import type { FinishReason } from '@aworld-train/core'

/** The end of a completion, as clients are told. */
export type CompletionEnd = 'stopped' | 'calls' | 'cut' | 'filtered'

/** Finish reasons by which third parties say that they withheld an answer. */
const filtered: ReadonlySet<string> = new Set(['content_filter', 'refusal'])

/** Decides how the end of a completion is reported to a client. An incomplete completion is never reported as complete. */
export function completionEnd({ unified, raw }: FinishReason): CompletionEnd {
  if (unified === 'tool-calls') return 'calls'
  if (unified !== 'stop') return 'cut'
  return filtered.has(raw) ? 'filtered' : 'stopped'
}
