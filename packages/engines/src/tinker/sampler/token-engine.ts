import { createHash } from 'node:crypto'
import {
  errorMessage,
  type GenerateRequest,
  type GenerateResult,
  type ModelDescription,
  type RandomKey,
  type TokenEngine,
  TrainError,
} from '@aworld-train/core'
import type { TinkerClient } from '../client/tinker-client.ts'
import type { PublishedWeights } from '../learner/policy.ts'
import { decodeSample, type WireSequence } from '../wire/messages.ts'

export interface TinkerSamplerOptions {
  readonly client: TinkerClient
  readonly model: ModelDescription
  readonly weights: PublishedWeights
}

/** Samples with the published weights. `end` fails calls in flight and later ones. */
export function createTokenEngine({ client, model, weights }: TinkerSamplerOptions): Omit<TokenEngine, 'close'> & { end(): void } {
  const closing = new AbortController()
  let sampled = 0

  async function generate(request: GenerateRequest, callerSignal: AbortSignal): Promise<GenerateResult> {
    callerSignal.throwIfAborted()
    closing.signal.throwIfAborted()
    const room = model.contextLength - request.promptTokenIds.length
    checkRequest(request, room)
    const signal = AbortSignal.any([callerSignal, closing.signal])
    return await weights.gate.pass(async () => {
      const version = weights.version()
      const maxTokens = Math.min(request.sampling.maxTokens, room)
      const sequence = await sample(request, maxTokens, signal)
      sampled += sequence.tokenIds.length
      request.onTokens?.(sequence.tokenIds, sequence.logprobs, version)
      signal.throwIfAborted()
      const raw = sequence.stopped ? 'stop' : 'length'
      return {
        tokenIds: sequence.tokenIds,
        logprobs: sequence.logprobs,
        finishReason: { unified: raw, raw },
        weightVersions: [{ fromToken: 0, version }],
        cachedTokens: 0,
      }
    }, signal)
  }

  async function sample(
    { promptTokenIds, sampling, random }: GenerateRequest,
    maxTokens: number,
    signal: AbortSignal,
  ): Promise<WireSequence> {
    const body = {
      // Sample i of a request has the seed + i. Each request takes one sample, so no two draws share a seed.
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(promptTokenIds) }] },
      sampling_params: {
        max_tokens: maxTokens,
        temperature: sampling.temperature,
        top_p: sampling.topP,
        top_k: sampling.topK === 0 ? -1 : sampling.topK,
        seed: toSeed(random),
        stop: model.stopTokenIds,
      },
      model_path: weights.path(),
      type: 'sample',
    }
    const { request_id: id } = await client.submit('/api/v1/asample', body, signal)
    const message = await client.result({ id, what: 'asample', signal }).catch((error: unknown) => {
      throw error instanceof TrainError && error.code === 'POLICY_WORKER_DIED' && error.details?.['status'] !== undefined
        ? forgotten(error)
        : error
    })
    return read(message, maxTokens)
  }

  function read(message: unknown, maxTokens: number): WireSequence {
    const invalid = (problem: string, cause?: unknown) =>
      new TrainError('POLICY_RESPONSE_INVALID', `${client.url} answered asample with what cannot be used: ${problem}; check its version.`, {
        cause,
      })
    if (!Buffer.isBuffer(message)) throw invalid('it is JSON')
    let sequences: WireSequence[]
    try {
      sequences = decodeSample(message)
    } catch (cause) {
      throw invalid(errorMessage(cause), cause)
    }
    const [sequence] = sequences
    if (!sequence || sequence.tokenIds.length === 0) throw invalid('it has no tokens')
    const { tokenIds, logprobs } = sequence
    if (tokenIds.length > maxTokens) throw invalid(`it has ${tokenIds.length} tokens, and ${maxTokens} were asked for`)
    if (!logprobs.every(Number.isFinite)) throw invalid('a logprob is not finite, so the weights are not; start again from a checkpoint')
    if (!tokenIds.every((id) => id >= 0 && id < model.vocabularySize))
      throw invalid(`an id is outside of the ${model.vocabularySize} of ${model.directory}, which is not the tokenizer of this model`)
    // Rounding may leave the likeliest token a little above 0.
    return { ...sequence, logprobs: logprobs.map((value) => Math.min(0, value)) }
  }

  function checkRequest({ promptTokenIds, sampling }: GenerateRequest, room: number): void {
    if (room <= 0) {
      const message = `The prompt has ${promptTokenIds.length} tokens, the context of "${model.name}" ${model.contextLength}; shorten the conversation.`
      throw new TrainError('POLICY_CONTEXT_OVERFLOW', message)
    }
    if (sampling.temperature !== 0 && sampling.temperature !== 1) {
      const message = `The temperature is ${sampling.temperature}; a Tinker service reports logprobs of temperature 1, so set it to 1, or to 0 for an evaluation.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    if (sampling.stop.length > 0)
      throw new TrainError('GATEWAY_BAD_REQUEST', 'A Tinker service stops at tokens or at texts, not at both; leave "stop" out.')
  }

  return {
    name: 'tinker',
    model,
    generate,
    weightVersion: () => weights.version(),
    sampledTokens: () => sampled,
    end: () => closing.abort(new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)),
  }
}

/** A sample whose result the service has lost can be drawn again. */
const forgotten = (cause: TrainError) => new TrainError('POLICY_ABORTED', cause.message, { cause })

/** A seed of 31 bits, as JAX takes them. The same key draws the same tokens, whatever else runs. */
function toSeed({ seed, task, sample, turn }: RandomKey): number {
  return (
    createHash('sha256')
      .update(JSON.stringify([seed, task, sample, turn]))
      .digest()
      .readUInt32BE() >>> 1
  )
}
