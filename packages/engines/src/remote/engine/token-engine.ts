import {
  createEventReader,
  type EngineHealth,
  type GenerateRequest,
  type GenerateResult,
  type ModelDescription,
  type TokenEngine,
  TrainError,
} from '@aworld-train/core'
import { fleetParts } from '../fleet/fleet.ts'
import { fleetHealth } from '../fleet/fleet-health.ts'
import type { Fleet, FleetOutcome } from '../fleet/fleet-types.ts'
import type { Replica } from '../fleet/replica.ts'
import { invalidAnswer } from '../http/server-error.ts'
import { checkTokens } from './chat-answer.ts'
import { toFinishReason } from './finish-reason.ts'
import { toSeed } from './to-seed.ts'
import type { LabelledSpan } from './to-spans.ts'
import { toSpans } from './to-spans.ts'
import type { CountedTokens, TokenProtocol } from './token-protocol.ts'

/** A token engine over servers. If it shares its fleet, the fleet's creator closes the fleet. */
export interface RemoteTokenEngine extends TokenEngine {
  readonly fleet: Fleet
  health(): EngineHealth
}

export interface TokenEngineParts {
  readonly fleet: Fleet
  readonly ownsFleet: boolean
  readonly model: ModelDescription
  readonly served: string
  readonly protocol: TokenProtocol
  readonly streamInterval: number
}

type Send = Fleet['send']
type Generate = (request: GenerateRequest, signal: AbortSignal, send: Send) => Promise<GenerateResult>

const generators = new WeakMap<RemoteTokenEngine, Generate>()

/** Samples on one replica, past admission, and counts nothing as sampled. */
export function generateOn(
  engine: RemoteTokenEngine,
  replica: Replica,
  request: GenerateRequest,
  signal: AbortSignal,
): Promise<GenerateResult> {
  const parts = fleetParts(engine.fleet)
  const generate = generators.get(engine) as Generate
  return generate(request, signal, (...call) => parts.sendTo(replica, ...call))
}

/** The tokens of one completion so far. */
interface Collected {
  readonly tokenIds: number[]
  readonly logprobs: number[]
  finish: string | null
  labels: readonly LabelledSpan[] | null
  cachedTokens: number
  counted: CountedTokens
}

export function createTokenEngine({ fleet, ownsFleet, model, served, protocol, streamInterval }: TokenEngineParts): RemoteTokenEngine {
  const initialVersion = fleet.weightVersion()
  const server = fleet.kind.name
  let sampled = 0
  let closed = false

  /** Hands over the tokens of an event and keeps them. */
  function receive(collected: Collected, request: GenerateRequest, data: string, decode: ReturnType<TokenProtocol['createDecoder']>): void {
    const piece = decode(data)
    if (piece === null) return
    const { tokenIds, logprobs } = piece
    if (tokenIds.length !== logprobs.length)
      throw invalidAnswer(server, `answered ${tokenIds.length} token ids with ${logprobs.length} logprobs`)
    checkTokens(server, tokenIds, logprobs)
    collected.finish = piece.finish ?? collected.finish
    collected.labels = piece.labels ?? collected.labels
    collected.cachedTokens = piece.cachedTokens ?? collected.cachedTokens
    collected.counted = piece.counted ?? collected.counted
    if (tokenIds.length === 0) return
    for (let index = 0; index < tokenIds.length; index++) {
      collected.tokenIds.push(tokenIds[index]!)
      collected.logprobs.push(logprobs[index]!)
    }
    request.onTokens?.(Int32Array.from(tokenIds), Float32Array.from(logprobs))
  }

  async function exchange(request: GenerateRequest, collected: Collected, signal: AbortSignal, send: Send): Promise<FleetOutcome> {
    const { promptTokenIds, sampling, policy } = request
    const context = {
      served: policy ?? served,
      stopTokenIds: model.stopTokenIds,
      maxTokens: Math.min(sampling.maxTokens, model.contextLength - promptTokenIds.length),
      seed: toSeed(request.random),
      streamInterval,
    }
    const decode = protocol.createDecoder(server)
    const events = createEventReader()
    const outcome = await send(
      {
        path: protocol.path,
        body: ({ salt }) => protocol.encode(request, { ...context, salt }),
        stream: true,
        affinity: request.affinity,
        policy,
        traceHeaders: request.traceHeaders,
      },
      {
        onHead({ contentType }) {
          if (!contentType.startsWith('text/event-stream'))
            throw invalidAnswer(server, `answered ${contentType || 'no type'} where a stream of events was asked for`)
        },
        onData(chunk) {
          for (const { data } of events.push(chunk)) {
            if (data !== '[DONE]' && !signal.aborted) receive(collected, request, data, decode)
          }
          return true
        },
      },
      signal,
    ).catch((cause: unknown) => {
      throw protocol.explain?.(cause) ?? cause
    })
    signal.throwIfAborted()
    return outcome
  }

  const generate: Generate = async (request, signal, send) => {
    if (closed) throw new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)
    signal.throwIfAborted()
    const { length } = request.promptTokenIds
    if (length >= model.contextLength) {
      throw new TrainError(
        'POLICY_CONTEXT_OVERFLOW',
        `The prompt has ${length} tokens, the context of "${model.name}" ${model.contextLength}; shorten the conversation.`,
        { details: { stopReason: 'context-overflow' } },
      )
    }
    const collected: Collected = { tokenIds: [], logprobs: [], finish: null, labels: null, cachedTokens: 0, counted: {} }
    const outcome = await exchange(request, collected, signal, send)
    const { tokenIds, logprobs, finish, cachedTokens, counted } = collected
    if (finish === null) throw invalidAnswer(server, 'ended in the middle of its answer')
    const { prompt = length, completion = tokenIds.length } = counted
    if (completion !== tokenIds.length) throw invalidAnswer(server, `answered ${tokenIds.length} token ids and counts ${completion}`)
    if (prompt !== length) throw invalidAnswer(server, `counts ${prompt} tokens of a prompt of ${length}`)
    // A server reports only the version of its base weights, so the versions of adapters are counted here.
    const labels = request.policy === undefined ? collected.labels : null
    const spans = toSpans({ server: outcome.replica, versions: outcome.weightVersions, labels, initialVersion })
    return {
      tokenIds: Int32Array.from(tokenIds),
      logprobs: Float32Array.from(logprobs),
      finishReason: toFinishReason(finish),
      cachedTokens,
      ...spans,
    }
  }

  const engine: RemoteTokenEngine = {
    name: fleet.kind.name,
    model,
    constraints: protocol.constraints,
    fleet,
    generate: (request, signal) => generate(counted(request), signal, (...call) => fleet.send(...call)),
    weightVersion: () => fleet.weightVersion(),
    forget: (affinity) => fleet.forget(affinity),
    sampledTokens: () => sampled,
    health: () => fleetHealth(fleet),
    async close() {
      closed = true
      if (ownsFleet) await fleet.close()
    },
  }
  generators.set(engine, generate)
  return engine

  function counted(request: GenerateRequest): GenerateRequest {
    return {
      ...request,
      onTokens(tokenIds, logprobs) {
        sampled += tokenIds.length
        request.onTokens?.(tokenIds, logprobs)
      },
    }
  }
}
