import { setTimeout as sleep } from 'node:timers/promises'
import {
  type GenerateRequest,
  type GenerateResult,
  type ModelDescription,
  type TokenEngine,
  TrainError,
  type WeightVersionSpan,
} from '@aworld-train/core'

/** The answer of a scripted engine to one call. */
export interface ScriptedCompletion {
  /**
   * Ids in the order of sampling. They are cut after the first stop token, at `maxTokens` and at the end of the context. Without a stop
   * token the reason is `length`.
   */
  readonly tokenIds: readonly number[]
  /** One logprob for each id. Default: -0.5, -0.25, -0.125 and so on, in turns of eight. */
  readonly logprobs?: readonly number[] | undefined
  /** Tokens handed over at a time. Default 1. */
  readonly pieceSize?: number | undefined
  /** Wait before each piece. Without it everything is sampled in one go. */
  readonly pieceDelayMs?: number | undefined
  /** Awaited before token `index`, so that a test can hold a completion at an exact place. */
  readonly beforeToken?: ((index: number, signal: AbortSignal) => Promise<void> | void) | undefined
  /** Number of pieces still drawn after an abort, as by an engine in the middle of a step. Default 0. */
  readonly piecesAfterAbort?: number | undefined
  /** Error with which the call rejects once the ids are sampled. */
  readonly error?: Error | undefined
}

export interface ScriptedEngineOptions {
  readonly model: ModelDescription
  /** Answers of the engine. A list is used in order of arrival, and then the engine is unavailable. A function is called for every call. */
  readonly script:
    | readonly ScriptedCompletion[]
    | ((request: GenerateRequest, call: number) => ScriptedCompletion | Promise<ScriptedCompletion>)
  readonly weightVersion?: number | undefined
}

/** A deterministic token engine that tells a test about its calls. */
export interface ScriptedEngine extends TokenEngine {
  /** Every request so far, in order of arrival. */
  readonly requests: readonly GenerateRequest[]
  /** Number of calls that have not settled. */
  inFlight(): number
  /** Number of calls that ended by an abort. */
  aborted(): number
  /** Gives completions this version from the next token on. */
  publish(version: number): void
}

/** A TokenEngine that samples chosen ids. It honours stop tokens, `maxTokens`, the context length, aborts and publishes. */
export function scriptedEngine({ model, script, weightVersion = 0 }: ScriptedEngineOptions): ScriptedEngine {
  const requests: GenerateRequest[] = []
  const stopTokenIds = new Set(model.stopTokenIds)
  let version = weightVersion
  let sampled = 0
  let running = 0
  let aborts = 0
  let closed = false

  async function completionFor(request: GenerateRequest, call: number): Promise<ScriptedCompletion> {
    if (typeof script === 'function') return await script(request, call)
    const completion = script[call]
    if (completion) return completion
    throw new TrainError(
      'POLICY_UNAVAILABLE',
      `The script of engine "${model.name}" has ${script.length} completions; call ${call + 1} has none.`,
    )
  }

  async function sample(request: GenerateRequest, signal: AbortSignal): Promise<GenerateResult> {
    const completion = await completionFor(request, requests.length - 1)
    const room = Math.min(request.sampling.maxTokens, model.contextLength - request.promptTokenIds.length)
    const stopAt = completion.tokenIds.findIndex((id) => stopTokenIds.has(id))
    const written = stopAt < 0 ? completion.tokenIds : completion.tokenIds.slice(0, stopAt + 1)
    const tokenIds = Int32Array.from(written.slice(0, room))
    const logprobs = Float32Array.from(tokenIds, (_, index) => completion.logprobs?.[index] ?? -1 / 2 ** ((index % 8) + 1))
    const spans: WeightVersionSpan[] = []
    const pieceSize = completion.pieceSize ?? 1
    let overdue = completion.piecesAfterAbort ?? 0
    for (let from = 0; from < tokenIds.length; from += pieceSize) {
      if (completion.pieceDelayMs !== undefined) await sleep(completion.pieceDelayMs, undefined, { signal }).catch(() => {})
      await completion.beforeToken?.(from, signal)
      if (signal.aborted && overdue-- <= 0) throw signal.reason
      const to = Math.min(from + pieceSize, tokenIds.length)
      if (spans.at(-1)?.version !== version) spans.push({ fromToken: from, version })
      sampled += to - from
      request.onTokens?.(tokenIds.slice(from, to), logprobs.slice(from, to), version)
    }
    if (completion.error) throw completion.error
    signal.throwIfAborted()
    const stopped = stopTokenIds.has(tokenIds.at(-1) ?? -1)
    const finishReason = stopped ? { unified: 'stop' as const, raw: 'stop' } : { unified: 'length' as const, raw: 'length' }
    return { tokenIds, logprobs, finishReason, weightVersions: spans, cachedTokens: 0 }
  }

  return {
    name: 'scripted',
    model,
    requests,
    async generate(request, signal) {
      if (closed) throw new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)
      signal.throwIfAborted()
      const { length } = request.promptTokenIds
      if (length >= model.contextLength) {
        throw new TrainError(
          'POLICY_CONTEXT_OVERFLOW',
          `The prompt has ${length} tokens, the context of "${model.name}" ${model.contextLength}; shorten the conversation.`,
        )
      }
      requests.push(request)
      running++
      try {
        return await sample(request, signal)
      } catch (error) {
        if (signal.aborted) aborts++
        throw error
      } finally {
        running--
      }
    },
    weightVersion: () => version,
    sampledTokens: () => sampled,
    inFlight: () => running,
    aborted: () => aborts,
    publish(next) {
      version = next
    },
    async close() {
      closed = true
    },
  }
}
