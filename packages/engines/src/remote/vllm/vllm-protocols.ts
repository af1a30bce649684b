import { type GenerateRequest, TrainError } from '@aworld-train/core'
import { allConstraints } from '../engine/all-constraints.ts'
import type { LabelledSpan } from '../engine/to-spans.ts'
import type { Piece, TokenCallContext, TokenProtocol } from '../engine/token-protocol.ts'
import { invalidAnswer, parseAnswer, toStreamError } from '../http/server-error.ts'
import { toStructuredOutputs } from './structured-outputs.ts'

interface WireSpan {
  readonly version: string
  readonly start: number
}

interface WireEvent<Choice> {
  readonly error?: unknown
  readonly choices?: readonly Choice[]
  readonly usage?: {
    readonly prompt_tokens?: number
    readonly completion_tokens?: number
    readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null
  } | null
}

interface GenerateChoice {
  readonly finish_reason?: string | null
  readonly token_ids?: readonly number[] | null
  readonly logprobs?: { readonly content?: readonly { readonly logprob: number }[] | null } | null
  readonly weight_versions?: readonly WireSpan[] | null
}

interface CompletionChoice {
  readonly finish_reason?: string | null
  readonly token_ids?: readonly number[] | null
  readonly logprobs?: { readonly token_logprobs?: readonly number[] | null } | null
}

function samplingOf({ sampling, constraint }: GenerateRequest, { maxTokens, seed, stopTokenIds }: TokenCallContext) {
  const { temperature, topP, topK, stop } = sampling
  return {
    temperature,
    top_p: topP,
    top_k: topK,
    max_tokens: maxTokens,
    seed,
    stop_token_ids: stopTokenIds,
    ...(stop.length > 0 && { stop, include_stop_str_in_output: true }),
    ...(constraint && { structured_outputs: toStructuredOutputs(constraint) }),
  }
}

function parseEvent<Choice>(server: string, data: string): { event: WireEvent<Choice>; choice: Choice | undefined } {
  const event = parseAnswer<WireEvent<Choice>>(server, data)
  if (event.error) throw toStreamError(server, event.error)
  return { event, choice: event.choices?.[0] }
}

/** The event with the usage and no choice. */
function usagePiece({ usage }: WireEvent<unknown>): Piece {
  const counted = { prompt: usage?.prompt_tokens, completion: usage?.completion_tokens }
  return { tokenIds: [], logprobs: [], cachedTokens: usage?.prompt_tokens_details?.cached_tokens, counted }
}

/** vLLM 0.32 answers 403 to the route if it was started without the flag, and older ones 404. A missing model is another 404. */
function explainMissingRoute(cause: unknown): TrainError | undefined {
  if (!(cause instanceof TrainError)) return
  const { message, details = {} } = cause
  if ((details['status'] !== 403 && details['status'] !== 404) || /model .* does not exist/i.test(message)) return
  return new TrainError(
    'CONFIG_INVALID',
    `${details['server']} answered ${details['status']} to /inference/v1/generate. Start it with --enable-scale-out, or set route: completions, which every vLLM serves.`,
    { cause, details },
  )
}

/** `POST /inference/v1/generate` (entrypoints/scale_out/token_in_token_out): spans of weight versions, no detokenising; needs `--enable-scale-out`. */
export const vllmGenerate: TokenProtocol = {
  path: '/inference/v1/generate',
  constraints: allConstraints,
  explain: explainMissingRoute,
  encode(request, context) {
    const { served, salt, streamInterval } = context
    return JSON.stringify({
      token_ids: Array.from(request.promptTokenIds),
      model: served,
      stream: true,
      stream_options: { include_usage: true },
      cache_salt: salt,
      sampling_params: { ...samplingOf(request, context), logprobs: 0, stream_interval: streamInterval },
    })
  },
  createDecoder: (server) => (data) => {
    const { event, choice } = parseEvent<GenerateChoice>(server, data)
    if (!choice) return usagePiece(event)
    const { token_ids: tokenIds, logprobs, finish_reason: finish, weight_versions: labels } = choice
    if (!tokenIds) throw invalidAnswer(server, 'answered without token ids')
    return {
      tokenIds,
      logprobs: logprobs?.content?.map(({ logprob }) => logprob) ?? [],
      finish,
      labels: labels as readonly LabelledSpan[] | null | undefined,
    }
  },
}

/** `POST /v1/completions` with ids for a prompt. Every vLLM serves it, but it does not report which weights sampled. */
export const vllmCompletions: TokenProtocol = {
  path: '/v1/completions',
  constraints: allConstraints,
  encode(request, context) {
    const { served, salt, streamInterval } = context
    return JSON.stringify({
      prompt: Array.from(request.promptTokenIds),
      model: served,
      stream: true,
      stream_options: { include_usage: true },
      stream_interval: streamInterval,
      cache_salt: salt,
      ...samplingOf(request, context),
      logprobs: 0,
      return_token_ids: true,
      skip_special_tokens: false,
    })
  },
  createDecoder: (server) => (data) => {
    const { event, choice } = parseEvent<CompletionChoice>(server, data)
    if (!choice) return usagePiece(event)
    const { token_ids: tokenIds, logprobs, finish_reason: finish } = choice
    if (!tokenIds) throw invalidAnswer(server, 'answered without token ids')
    return { tokenIds, logprobs: logprobs?.token_logprobs ?? [], finish }
  },
}
