import {
  type ChannelArrays,
  type ChannelFailure,
  type ChannelGenerated,
  type ChannelGenerateFailed,
  type ErrorCode,
  errorCatalogue,
  type GenerateRequest,
  type GenerateResult,
  type ModelDescription,
  TrainError,
} from '@aworld-train/core'
import type { ChannelEngine, ChannelEngineOptions, EngineConnection, EngineLink } from './channel-types.ts'
import { createClientModel } from './client-model.ts'

/** A model call on its way to a trainer client and back. */
interface Call {
  readonly key: string
  readonly request: GenerateRequest
  readonly resolve: (result: GenerateResult) => void
  readonly reject: (error: unknown) => void
  /** Its number on the connection that carries it; `null` while it waits for a connection. */
  id: number | null
}

/** The connection that carries the calls of a rollout. */
interface Route {
  connection: EngineConnection | null
  readonly calls: Set<Call>
}

interface Line {
  lastId: number
  readonly calls: Map<number, Call>
}

/** The error of a trainer client as a TrainError: a code of the catalogue stays; another becomes POLICY_UNAVAILABLE where a retry may succeed, else POLICY_FAILED. */
function toEngineError({ code, message, retryable }: ChannelFailure): TrainError {
  const ourCode = Object.hasOwn(errorCatalogue, code) ? (code as ErrorCode) : retryable ? 'POLICY_UNAVAILABLE' : 'POLICY_FAILED'
  return new TrainError(ourCode, ourCode === code ? message : `${code}: ${message}`, { details: { clientCode: code } })
}

/**
 * An engine over the channel: `generate` goes to the trainer client that submitted the rollout and waits where its connection is lost.
 * It is not ready before the first trainer client was welcomed.
 */
export function createChannelEngine(options: ChannelEngineOptions): ChannelEngine {
  const { name } = options
  const model = createClientModel(options)
  const routes = new Map<string, Route>()
  const lines = new Map<EngineConnection, Line>()
  let version = 0
  let sampled = 0
  let underWay = 0
  let closed = false

  function send(call: Call, connection: EngineConnection): void {
    const line = lines.get(connection)
    if (!line) return
    const { promptTokenIds, sampling, random, origin } = call.request
    const { temperature, topP, topK, maxTokens, stop } = sampling
    call.id = ++line.lastId
    line.calls.set(call.id, call)
    connection.send(
      {
        type: 'generate',
        id: call.id,
        key: call.key,
        agent: origin!.agent,
        trajectory: origin!.trajectory,
        turn: random.turn,
        sampling: { temperature, topP, topK, maxTokens, stop: [...stop] },
      },
      { promptIds: promptTokenIds },
    )
  }

  function forget(call: Call): void {
    const route = routes.get(call.key)
    if (route?.connection && call.id !== null) lines.get(route.connection)?.calls.delete(call.id)
    if (route?.calls.delete(call)) underWay--
  }

  function fail(call: Call, error: unknown): void {
    forget(call)
    call.reject(error)
  }

  function routeOf(key: string | undefined): Route {
    const route = key === undefined ? undefined : routes.get(key)
    if (closed) throw new TrainError('POLICY_UNAVAILABLE', `Engine "${name}" is closed; start the rollout service again.`)
    if (route) return route
    const whose = key === undefined ? 'A call without a rollout' : `Rollout "${key}"`
    throw new TrainError('CHANNEL_LOST', `${whose} has no trainer that samples for it; submit it over a channel.`)
  }

  function roomIn(request: GenerateRequest): void {
    const { contextLength } = model.description()
    const { length } = request.promptTokenIds
    if (length < contextLength) return
    const message = `The prompt has ${length} tokens, the context of "${name}" ${contextLength}; shorten the conversation.`
    throw new TrainError('POLICY_CONTEXT_OVERFLOW', message, { details: { stopReason: 'context-overflow' } })
  }

  function checked({ request, key }: Call, message: ChannelGenerated, arrays: ChannelArrays): GenerateResult {
    const { ids, logprobs } = arrays
    const { finish, minVersion, maxVersion } = message
    const wrong = (what: string) =>
      new TrainError('POLICY_RESPONSE_INVALID', `The trainer's answer to a model call of rollout "${key}" ${what}; nothing of it is used.`)
    if (!(ids instanceof Int32Array) || !(logprobs instanceof Float32Array)) throw wrong('lacks its ids or logprobs')
    if (ids.length !== logprobs.length) throw wrong(`has ${ids.length} ids with ${logprobs.length} logprobs`)
    const { vocabularySize, stopTokenIds } = model.description()
    for (let index = 0; index < ids.length; index++) {
      if (ids[index]! < 0 || ids[index]! >= vocabularySize) {
        throw wrong(`has id ${ids[index]} at ${index}, beyond the vocabulary of ${vocabularySize}`)
      }
      if (!Number.isFinite(logprobs[index])) throw wrong(`has logprob ${logprobs[index]} at ${index}`)
    }
    if (maxVersion < minVersion) throw wrong(`was sampled by weights from ${minVersion} to ${maxVersion}`)
    if (finish !== 'aborted' && ids.length === 0) throw wrong('has no token')
    // Trainers also say "stop" for a completion that reached its limit.
    const stopped = stopTokenIds.includes(ids.at(-1) ?? -1)
    const full = ids.length >= request.sampling.maxTokens && !stopped && request.sampling.stop.length === 0
    const unified = finish === 'stop' && full ? 'length' : finish
    return {
      tokenIds: ids,
      logprobs,
      finishReason: { unified, raw: finish },
      weightVersions: ids.length === 0 ? [] : [{ fromToken: 0, version: minVersion }],
      ...(minVersion !== maxVersion && { mixedVersions: { lowest: minVersion, highest: maxVersion } }),
      cachedTokens: 0,
    }
  }

  function complete(call: Call, message: ChannelGenerated, arrays: ChannelArrays): void {
    try {
      const result = checked(call, message, arrays)
      const { tokenIds, logprobs, finishReason } = result
      version = Math.max(version, message.maxVersion)
      if (tokenIds.length > 0) call.request.onTokens?.(tokenIds, logprobs, message.minVersion)
      if (finishReason.unified === 'aborted') throw aborted(call, tokenIds.length)
      forget(call)
      call.resolve(result)
    } catch (error) {
      fail(call, error)
    }
  }

  const link: EngineLink = {
    needsFiles: model.needsFiles,
    keepFiles: model.keepFiles,
    check: model.check,
    join(connection) {
      lines.set(connection, { lastId: 0, calls: new Map() })
    },
    connect(key, connection) {
      const route = routes.get(key)
      if (!route) {
        routes.set(key, { connection, calls: new Set() })
        return
      }
      // The same connection submitted it again, so its calls are under way.
      if (route.connection === connection) return
      for (const call of route.calls) {
        if (route.connection === null || call.id === null) continue
        lines.get(route.connection)?.calls.delete(call.id)
        route.connection.send({ type: 'abort', id: call.id })
        call.id = null
      }
      route.connection = connection
      if (connection) for (const call of route.calls) send(call, connection)
    },
    disconnect(connection) {
      lines.delete(connection)
      for (const route of routes.values()) if (route.connection === connection) route.connection = null
    },
    release(key, reason) {
      const route = routes.get(key)
      for (const call of route?.calls ?? []) {
        if (route!.connection && call.id !== null) route!.connection.send({ type: 'abort', id: call.id })
        fail(call, reason)
      }
      routes.delete(key)
    },
    answer(connection, message: ChannelGenerated | ChannelGenerateFailed, arrays) {
      // A completion that nobody waits for was sampled all the same.
      if (message.type === 'generated') sampled += arrays['ids']?.length ?? 0
      const call = lines.get(connection)?.calls.get(message.id)
      if (!call) return
      if (message.type === 'generated') complete(call, message, arrays)
      else fail(call, toEngineError(message.error))
    },
    weights(next, { restart } = { restart: false }) {
      version = restart ? next : Math.max(version, next)
    },
    calls: () => underWay,
  }

  return {
    name,
    get model(): ModelDescription {
      return model.description()
    },
    chat: model.chat,
    link,
    async generate(request, signal) {
      signal.throwIfAborted()
      const key = request.origin?.rollout
      const route = routeOf(key)
      roomIn(request)
      const { promise, resolve, reject } = Promise.withResolvers<GenerateResult>()
      const call: Call = { key: key!, request, resolve, reject, id: null }
      route.calls.add(call)
      underWay++
      const abort = () => {
        if (!route.calls.has(call)) return
        const { connection } = route
        if (connection && call.id !== null) connection.send({ type: 'abort', id: call.id })
        fail(call, signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      if (route.connection) send(call, route.connection)
      try {
        return await promise
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    weightVersion: () => version,
    sampledTokens: () => sampled,
    health() {
      const reason = closed ? 'it is closed' : (model.missing() ?? (lines.size === 0 ? 'no trainer is connected' : null))
      return { ready: reason === null, reason, replicas: [] }
    },
    async close() {
      closed = true
      const error = new TrainError('POLICY_UNAVAILABLE', `Engine "${name}" was closed; start the rollout service again.`)
      for (const key of [...routes.keys()]) link.release(key, error)
    },
  }
}

function aborted({ key }: Call, tokens: number): TrainError {
  const how = tokens === 0 ? 'without a token' : `after ${tokens} tokens, which are not used`
  return new TrainError(
    'POLICY_ABORTED',
    `The trainer's engine gave up a model call of rollout "${key}" ${how}; the call may be sent again.`,
  )
}
