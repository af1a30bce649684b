import {
  type ChannelArrays,
  type ChannelGenerated,
  type ChannelGenerateFailed,
  type GenerateRequest,
  type GenerateResult,
  type ModelDescription,
  TrainError,
} from '@aworld-train/core'
import type { EngineConnection } from './channel-connection.ts'
import type { ChannelEngine, ChannelEngineOptions, EngineLink } from './channel-types.ts'
import { ClientCalls } from './client-calls.ts'
import { type ClientModel, createClientModel } from './client-model.ts'
import type { ClientCall, Submission } from './submission-table.ts'
import { toEngineError, toGenerateResult } from './to-generate-result.ts'

/**
 * An engine over the channel: `generate` goes to the trainer client that submitted the rollout and waits where its connection is lost.
 * It is not ready before the first trainer client was welcomed.
 */
export const createChannelEngine = (options: ChannelEngineOptions): ChannelEngine => new TrainerClientEngine(options)

class TrainerClientEngine implements ChannelEngine {
  readonly name: string
  readonly chat: ChannelEngine['chat']
  readonly link: EngineLink
  readonly #model: ClientModel
  readonly #calls = new ClientCalls()
  #version = 0
  #sampled = 0
  #isClosed = false

  constructor(options: ChannelEngineOptions) {
    const model = createClientModel(options)
    const calls = this.#calls
    this.name = options.name
    this.chat = model.chat
    this.#model = model
    this.link = {
      submissions: calls.submissions,
      needsFiles: model.needsFiles,
      keepFiles: model.keepFiles,
      check: model.check,
      join: (connection) => calls.join(connection),
      connect: (submission, connection) => calls.connect(submission, connection),
      disconnect: (connection) => calls.disconnect(connection),
      release: (submission, reason) => calls.release(submission, reason),
      answer: (connection, message, arrays) => this.#answer(connection, message, arrays),
      weights: (version, { restart } = { restart: false }) => {
        this.#version = restart ? version : Math.max(this.#version, version)
      },
      calls: () => calls.size,
    }
  }

  get model(): ModelDescription {
    return this.#model.description()
  }

  async generate(request: GenerateRequest, signal: AbortSignal): Promise<GenerateResult> {
    signal.throwIfAborted()
    const submission = this.#submissionOf(request)
    this.#requireRoom(request)
    const { call, result } = this.#calls.begin(submission, request)
    const abort = () => this.#calls.abort(call, signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      return await result
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  weightVersion(): number {
    return this.#version
  }

  sampledTokens(): number {
    return this.#sampled
  }

  health(): ReturnType<NonNullable<ChannelEngine['health']>> {
    const missing = this.#model.missing() ?? (this.#calls.connections === 0 ? 'no trainer is connected' : null)
    const reason = this.#isClosed ? 'it is closed' : missing
    return { ready: reason === null, reason, replicas: [] }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#calls.abortAll(new TrainError('POLICY_UNAVAILABLE', `Engine "${this.name}" was closed; start the rollout service again.`))
  }

  #submissionOf({ origin }: GenerateRequest): Submission {
    if (this.#isClosed) throw new TrainError('POLICY_UNAVAILABLE', `Engine "${this.name}" is closed; start the rollout service again.`)
    const submission = origin && this.#calls.submissions.served(origin.rollout)
    if (submission) return submission
    const whose = origin ? `Rollout "${origin.rollout}"` : 'A call without a rollout'
    throw new TrainError('CHANNEL_LOST', `${whose} has no trainer that samples for it; submit it over a channel.`)
  }

  #requireRoom({ promptTokenIds: { length } }: GenerateRequest): void {
    const { contextLength } = this.model
    if (length < contextLength) return
    const message = `The prompt has ${length} tokens, the context of "${this.name}" ${contextLength}; shorten the conversation.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow' } })
  }

  #answer(connection: EngineConnection, message: ChannelGenerated | ChannelGenerateFailed, arrays: ChannelArrays): void {
    // A completion that nobody waits for was sampled all the same.
    if (message.type === 'generated') this.#sampled += arrays['ids']?.length ?? 0
    const call = this.#calls.find(connection, message.id)
    if (!call) return
    if (message.type === 'generated') this.#complete(call, message, arrays)
    else this.#calls.fail(call, toEngineError(message.error))
  }

  #complete(call: ClientCall, message: ChannelGenerated, arrays: ChannelArrays): void {
    try {
      const result = toGenerateResult(call, message, arrays, this.model)
      const { tokenIds, logprobs, finishReason } = result
      this.#version = Math.max(this.#version, message.maxVersion)
      if (tokenIds.length > 0) call.request.onTokens?.(tokenIds, logprobs, message.minVersion)
      if (finishReason.unified === 'aborted') throw aborted(call, tokenIds.length)
      this.#calls.resolve(call, result)
    } catch (error) {
      this.#calls.fail(call, error)
    }
  }
}

function aborted({ submission: { key } }: ClientCall, tokens: number): TrainError {
  const how = tokens === 0 ? 'without a token' : `after ${tokens} tokens, which are not used`
  return new TrainError(
    'POLICY_ABORTED',
    `The trainer's engine gave up a model call of rollout "${key}" ${how}; the call may be sent again.`,
  )
}
