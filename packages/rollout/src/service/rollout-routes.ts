import type { IncomingMessage, ServerResponse } from 'node:http'
import { didYouMean, RolloutRequest, type RolloutState, TrainError } from '@aworld-train/core'
import { BodyError, readBody, requestUrl } from '@aworld-train/http'
import type { Registry } from 'prom-client'
import { streamEvents } from './event-stream.ts'
import { checkMethod, invalidRequest, sendJson } from './http-answer.ts'
import { readDuration } from './read-duration.ts'
import type { RolloutServerLimits } from './rollout-server-limits.ts'
import type { RolloutService } from './rollout-service.ts'
import { type Parts, toWire } from './wire.ts'

export interface ServiceRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Runs work that may take long. Its signal aborts when the client is gone or the server closes. */
  whileWaiting(work: (signal: AbortSignal) => Promise<void>): Promise<void>
}

const everything: Parts = { episode: true, samples: true }

function readParts(include: string | null): Parts {
  if (include === null) return everything
  const names = include.split(',').filter(Boolean)
  const strange = names.find((name) => !(name in everything))
  if (strange !== undefined)
    throw invalidRequest(`"include" names "${strange}"; it may name episode and samples.${didYouMean(strange, Object.keys(everything))}`)
  return { episode: names.includes('episode'), samples: names.includes('samples') }
}

/** Most problems that an answer names, so that a body of many errors does not make an answer of many kilobytes. */
const shownProblems = 5

async function readRequest(request: IncomingMessage, response: ServerResponse, maxBytes: number): Promise<RolloutRequest> {
  // A page in a browser may send text to any server without permission, but not JSON.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw invalidRequest('The body is not declared as JSON; send it with "Content-Type: application/json".', 415)
  let body: Buffer
  try {
    body = await readBody(request, response, maxBytes)
  } catch (cause) {
    if (!(cause instanceof BodyError)) throw cause
    throw invalidRequest(`${cause.message}; send a smaller task, or raise maxBodyBytes.`, cause.reason === 'too-large' ? 413 : 400)
  }
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    throw invalidRequest(`The body is not JSON in UTF-8: ${cause instanceof Error ? cause.message : cause}. Send a RolloutRequest.`)
  }
  const parsed = RolloutRequest.safeParse(json)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.slice(0, shownProblems).map(({ path, message }) => `${path.join('.') || 'the body'}: ${message}`)
  throw invalidRequest(`The body is no RolloutRequest. ${problems.join('; ')}.`)
}

export interface RoutesOptions {
  readonly service: RolloutService
  readonly limits: RolloutServerLimits
  readonly metrics: Registry
}

/** Routes each path of the service to its answer. */
export function createRoutes({ service, limits, metrics }: RoutesOptions): (request: ServiceRequest) => Promise<void> {
  const send = (response: ServerResponse, state: RolloutState, parts: Parts, status = 200, headers?: Record<string, string>) =>
    sendJson(response, status, toWire(state, parts), headers)

  async function submit({ request, response }: ServiceRequest): Promise<void> {
    const state = await service.accept(await readRequest(request, response, limits.maxBodyBytes))
    const location = `/v1/rollouts/${encodeURIComponent(state.id)}`
    send(response, state, everything, state.status === 'queued' ? 202 : 200, { location })
  }

  async function get({ response, whileWaiting }: ServiceRequest, key: string, query: URLSearchParams): Promise<void> {
    const parts = readParts(query.get('include'))
    const wait = query.get('wait')
    const timeoutMs = wait === null ? 0 : readDuration(wait)
    if (timeoutMs === null) throw invalidRequest(`"wait" is "${wait}"; write a duration such as 30s, 500ms or 2m.`)
    if (timeoutMs === 0) send(response, service.get(key), parts)
    else
      await whileWaiting(async (signal) => {
        send(response, await service.wait(key, { timeoutMs: Math.min(timeoutMs, limits.maxWaitMs), signal }), parts)
      })
  }

  async function cancel({ response, whileWaiting }: ServiceRequest, key: string): Promise<void> {
    await whileWaiting(async () => send(response, await service.cancel(key), { episode: false, samples: false }))
  }

  async function events({ request, response, whileWaiting }: ServiceRequest, rollout: string | undefined): Promise<void> {
    const lastEventId = request.headers['last-event-id']
    const after = typeof lastEventId === 'string' ? lastEventId : undefined
    await whileWaiting((signal) => streamEvents({ service, response, signal, rollout, after, keepAwakeMs: limits.keepAwakeMs }))
  }

  function sendReady(response: ServerResponse): void {
    const { stopping } = service.counts()
    const reasons = stopping ? ['the service is about to stop'] : []
    const text = JSON.stringify({ status: stopping ? 'not-ready' : 'ready', reasons })
    sendJson(response, stopping ? 503 : 200, text)
  }

  async function sendMetrics(response: ServerResponse): Promise<void> {
    const text = await metrics.metrics()
    response.writeHead(200, { 'content-type': metrics.contentType, 'content-length': Buffer.byteLength(text) })
    response.end(text)
  }

  const states: Readonly<Record<string, (response: ServerResponse) => void | Promise<void>>> = {
    '/health': (response) => sendJson(response, 200, JSON.stringify({ status: 'ok' })),
    '/ready': sendReady,
    '/metrics': sendMetrics,
  }

  return async (each) => {
    const { request, response } = each
    const { pathname, searchParams } = requestUrl(request)
    const [version, collection, encodedKey, rest, more] = pathname.slice(1).split('/')
    const { method } = request
    const state = states[pathname]
    if (state) {
      checkMethod(pathname, method, ['GET', 'HEAD'])
      return await state(response)
    }
    if (version !== 'v1' || more !== undefined) throw unknownPath(pathname)
    if (collection === 'events' && encodedKey === undefined) {
      checkMethod(pathname, method, ['GET'])
      return await events(each, undefined)
    }
    if (collection !== 'rollouts') throw unknownPath(pathname)
    if (encodedKey === undefined) {
      checkMethod(pathname, method, ['POST'])
      return await submit(each)
    }
    const key = decodeKey(encodedKey)
    if (rest === 'events') {
      checkMethod(pathname, method, ['GET'])
      return await events(each, key)
    }
    if (rest !== undefined) throw unknownPath(pathname)
    checkMethod(pathname, method, ['GET', 'HEAD', 'DELETE'])
    if (method === 'DELETE') await cancel(each, key)
    else await get(each, key, searchParams)
  }
}

function unknownPath(path: string): TrainError {
  const paths = 'POST /v1/rollouts, GET and DELETE /v1/rollouts/{key}, GET /v1/rollouts/{key}/events, GET /v1/events'
  return invalidRequest(`${path.slice(0, 200)} is not served; known are ${paths}.`, 404)
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new TrainError('ROLLOUT_UNKNOWN', 'The key in the path is not percent-encoded UTF-8; encode the key of the request.')
  }
}
