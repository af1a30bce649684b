import { type Sampling, siblingModule } from '@aworld-train/core'
import { createChatEngine, type RemoteChatEngine } from '../engine/chat-engine.ts'
import { neutralSampling } from '../engine/neutral-sampling.ts'
import { type ChatEngineOptions, type TokenEngineOptions, takeFleet } from '../engine/options.ts'
import { createTokenEngine, type RemoteTokenEngine } from '../engine/token-engine.ts'
import { createFleet } from '../fleet/fleet.ts'
import type { Fleet, FleetOptions } from '../fleet/fleet-types.ts'
import { createStreamingHandler } from './chat-stream.ts'
import { sglangKind } from './sglang-kind.ts'
import { sglangGenerate } from './sglang-protocol.ts'

/** A fleet of SGLang servers for several engines. */
export function createSglangFleet(options: FleetOptions): Promise<Fleet> {
  return createFleet(sglangKind, options)
}

/** Samples token ids on SGLang servers by `/generate`. Rejects with CONFIG_INVALID for an invalid address. */
export async function createSglangTokenEngine(options: TokenEngineOptions): Promise<RemoteTokenEngine> {
  const { model, served = model.name, streamInterval = 8 } = options
  const fleet = await takeFleet(sglangKind, options)
  return createTokenEngine({ ...fleet, model, served, protocol: sglangGenerate, streamInterval })
}

/**
 * Passes Chat Completions to SGLang servers. They report token ids only without streaming, so a client that wants a stream gets the whole
 * answer as one event.
 */
export async function createSglangChatEngine(options: ChatEngineOptions): Promise<RemoteChatEngine> {
  const { model, served = model.name, policy, logprobs = 'temperature' } = options
  const fleet = await takeFleet(sglangKind, options)
  const engine = createChatEngine({
    ...fleet,
    model,
    policy,
    logprobs,
    reader: siblingModule('sglang-reader', import.meta.url),
    splice: (sampling) => splice(sampling, served, policy),
  })
  return {
    ...engine,
    async send(call, handler, signal) {
      if (!call.stream) return engine.send(call, handler, signal)
      const streaming = createStreamingHandler(handler)
      const outcome = await engine.send({ ...call, stream: false }, streaming, signal)
      streaming.finish()
      return outcome
    },
  }
}

function splice({ temperature, topP, topK, maxTokens, stop }: Sampling, served: string, policy: string | undefined): string {
  const members = {
    model: served,
    n: 1,
    stream: false,
    stream_options: null,
    temperature,
    top_p: topP,
    top_k: topK === 0 ? -1 : topK,
    max_tokens: maxTokens,
    max_completion_tokens: maxTokens,
    ...neutralSampling,
    custom_logit_processor: null,
    ...(stop.length > 0 && { stop }),
    ...(policy !== undefined && { lora_path: policy }),
    logprobs: true,
    return_meta_info: true,
    return_prompt_token_ids: true,
  }
  return JSON.stringify(members).slice(1, -1)
}
