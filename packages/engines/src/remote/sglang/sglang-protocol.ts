import { allConstraints } from '../engine/all-constraints.ts'
import type { TokenProtocol } from '../engine/token-protocol.ts'
import { invalidAnswer, parseAnswer, toStreamError } from '../http/server-error.ts'
import { toGrammarParams } from './grammar-params.ts'
import type { SglangMeta } from './sglang-meta.ts'

interface WireEvent {
  readonly error?: unknown
  readonly meta_info?: SglangMeta
}

/** `POST /generate` with `input_ids` (managers/io_struct.py, GenerateReqInput). */
export const sglangGenerate: TokenProtocol = {
  path: '/generate',
  constraints: allConstraints,
  encode({ promptTokenIds, sampling, constraint, policy }, { maxTokens, stopTokenIds, seed, streamInterval, salt }) {
    const { temperature, topP, topK, stop } = sampling
    return JSON.stringify({
      input_ids: Array.from(promptTokenIds),
      sampling_params: {
        temperature,
        top_p: topP,
        top_k: topK === 0 ? -1 : topK,
        max_new_tokens: maxTokens,
        stop_token_ids: stopTokenIds,
        ...(stop.length > 0 && { stop }),
        ...(constraint && toGrammarParams(constraint)),
        no_stop_trim: true,
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        stream_interval: streamInterval,
        sampling_seed: seed % 2 ** 31,
      },
      return_logprob: true,
      logprob_start_len: -1,
      stream: true,
      cache_salt: salt,
      ...(policy !== undefined && { lora_path: policy }),
    })
  },
  createDecoder(server) {
    let seen = 0
    return (data) => {
      const event = parseAnswer<WireEvent>(server, data)
      if (event.error) throw toStreamError(server, event.error)
      const { meta_info: meta } = event
      const finish = meta?.finish_reason
      if (finish?.type === 'abort' && finish.status_code) throw toStreamError(server, { message: finish.message, code: finish.status_code })
      if (!meta?.output_token_logprobs) throw invalidAnswer(server, 'answered without token ids and logprobs')
      const fresh = newPairs(server, meta, seen)
      seen += fresh.length
      return {
        tokenIds: fresh.map(([, id]) => id),
        logprobs: fresh.map(([logprob]) => logprob),
        finish: finish?.type,
        labels: meta.weight_versions ?? (meta.weight_version === undefined ? null : [{ version: meta.weight_version, start: 0 }]),
        cachedTokens: meta.cached_tokens,
        counted: { prompt: meta.prompt_tokens, completion: meta.completion_tokens },
      }
    }
  },
}

/**
 * Reads events, which have the whole output so far or, with `--incremental-streaming-output`, only the new part. The total length tells
 * which.
 */
function newPairs(
  server: string,
  { output_token_logprobs: tokenLogprobs, output_token_logprobs_length: total, completion_tokens: counted }: SglangMeta,
  seen: number,
) {
  const pairs = tokenLogprobs ?? []
  const length = total ?? counted ?? pairs.length
  if (pairs.length === length && length >= seen) return pairs.slice(seen)
  if (seen + pairs.length === length) return pairs
  throw invalidAnswer(server, `answered ${pairs.length} logprobs behind ${seen} where ${length} tokens were sampled`)
}
