import { type ModelDescription, type Sampling, siblingModule } from '@aworld-train/core'
import { createChatEngine, type RemoteChatEngine } from '../engine/chat-engine.ts'
import { neutralSampling } from '../engine/neutral-sampling.ts'
import { type ChatEngineOptions, type TokenEngineOptions, takeFleet } from '../engine/options.ts'
import { createTokenEngine, type RemoteTokenEngine } from '../engine/token-engine.ts'
import { createFleet } from '../fleet/fleet.ts'
import type { Fleet, FleetOptions } from '../fleet/fleet-types.ts'
import { type VllmKindOptions, vllmKind } from './vllm-kind.ts'
import { vllmCompletions, vllmGenerate } from './vllm-protocols.ts'

/** A fleet of vLLM servers for several engines. */
export function createVllmFleet({ loadMethod, ...options }: FleetOptions & VllmKindOptions): Promise<Fleet> {
  return createFleet(vllmKind({ loadMethod }), options)
}

export type VllmTokenEngineOptions = TokenEngineOptions &
  VllmKindOptions & {
    /**
     * `generate` (default) is `/inference/v1/generate`, which reports the weights of each token and needs `--enable-scale-out`.
     * `completions` is `/v1/completions`, which every vLLM serves.
     */
    readonly route?: 'generate' | 'completions' | undefined
  }

/**
 * Samples token ids on vLLM servers, started with `--logprobs-mode processed_logprobs`. Servers that do not answer yet are taken in when
 * they do. Rejects with CONFIG_INVALID for an invalid address.
 */
export async function createVllmTokenEngine(options: VllmTokenEngineOptions): Promise<RemoteTokenEngine> {
  const { model, served = model.name, streamInterval = 8, route = 'generate' } = options
  const fleet = await takeFleet(vllmKind(options), options)
  const protocol = route === 'generate' ? vllmGenerate : vllmCompletions
  return createTokenEngine({ ...fleet, model, served, protocol, streamInterval })
}

/** Passes Chat Completions to vLLM servers, which render and parse themselves and report ids and logprobs. */
export async function createVllmChatEngine(options: ChatEngineOptions & VllmKindOptions): Promise<RemoteChatEngine> {
  const { model, policy, served = policy ?? model.name, logprobs = 'temperature' } = options
  const fleet = await takeFleet(vllmKind(options), options)
  return createChatEngine({
    ...fleet,
    model,
    policy,
    logprobs,
    reader: siblingModule('vllm-reader', import.meta.url),
    splice: (sampling) => splice(sampling, served, model),
  })
}

/** Adds members to a request. vLLM refuses a `max_tokens` above its context, and cuts it to the room after the prompt. */
function splice(
  { temperature, topP, topK, maxTokens, stop }: Sampling,
  served: string,
  { contextLength }: Pick<ModelDescription, 'contextLength'>,
) {
  const most = Math.min(maxTokens, contextLength)
  const members = {
    model: served,
    n: 1,
    temperature,
    top_p: topP,
    top_k: topK,
    max_tokens: most,
    max_completion_tokens: most,
    ...neutralSampling,
    allowed_token_ids: null,
    bad_words: [],
    use_beam_search: false,
    ...(stop.length > 0 && { stop }),
    logprobs: true,
    top_logprobs: 0,
    return_token_ids: true,
  }
  return JSON.stringify(members).slice(1, -1)
}
