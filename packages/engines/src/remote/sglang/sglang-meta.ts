import type { WeightVersionSpan } from '@aworld-train/core'

/** The members beside an output in SGLang's answers (managers/tokenizer_manager.py, utils/weight_versions.py). */
export interface SglangMeta {
  readonly id?: string
  readonly finish_reason?: { readonly type: string; readonly message?: string; readonly status_code?: number | null } | null
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly cached_tokens?: number
  /** [logprob, token id, text or null] of each sampled token. */
  readonly output_token_logprobs?: readonly (readonly [number, number, string | null])[] | null
  /** Number of tokens of the whole output so far, even if the event has only new ones. */
  readonly output_token_logprobs_length?: number
  readonly weight_version?: string
  readonly weight_versions?: readonly { readonly version: string; readonly start: number; readonly end: number }[]
}

/** Spans of weight versions if the server uses the numbers that it was given; `undefined` if it has names of its own. */
export function toSglangSpans({ weight_versions: spans, weight_version: version }: SglangMeta): readonly WeightVersionSpan[] | undefined {
  const named = spans ?? (version === undefined ? [] : [{ version, start: 0 }])
  if (named.length === 0 || named.some(({ version }) => !/^\d+$/.test(version))) return undefined
  return named.map(({ version, start }) => ({ fromToken: start, version: Number(version) }))
}
