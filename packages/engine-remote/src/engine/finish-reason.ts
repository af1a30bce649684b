import type { FinishReason } from '@aworld-train/protocol'

const unified: Readonly<Record<string, FinishReason['unified']>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  abort: 'aborted',
  content_filter: 'stop',
  repetition: 'stop',
}

/** The server's word for why a completion ended, beside ours; a word nobody knows is `error`. */
export function toFinishReason(raw: string): FinishReason {
  return { unified: unified[raw] ?? 'error', raw }
}
