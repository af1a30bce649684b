/** Fields of a request that every call reads, or whose content its turn keeps elsewhere. */
export const knownFields: readonly string[] = [
  'messages',
  'model',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'n',
  'modalities',
  'logprobs',
  'top_logprobs',
  'max_tokens',
  'max_completion_tokens',
  'return_token_ids',
]
