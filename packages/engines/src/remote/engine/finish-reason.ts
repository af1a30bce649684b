import type { FinishReason } from '@aworld-train/core'

const unified: Readonly<Record<string, FinishReason['unified']>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  abort: 'aborted',
  content_filter: 'stop',
  repetition: 'stop',
}

/** Reason for the end of a completion: our word beside the server's. An unknown word of the server is `error`. */
export function toFinishReason(raw: string): FinishReason {
  return { unified: unified[raw] ?? 'error', raw }
}
