import type { Socket } from 'node:net'
import { collectBody, discardBody, type HttpRequest, type HttpResponse } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import type { Dialect, ModelCall } from '../call.ts'
import type { Capabilities } from '../capability.ts'
import { countTokens } from '../count-tokens.ts'
import type { Counters } from '../counters.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { dialectOf, dialects } from '../dialects/index.ts'
import { sideRequest } from '../dialects/side-requests.ts'
import { badRequest, toHttpFailure, unknownUrl } from '../failure.ts'
import { type GatewayParts, serveCall } from '../serve-call.ts'
import type { AgentState, SessionState } from '../session-state.ts'
import { sendFailure, sendText } from '../stages/encode.ts'
import type { AdminApi } from './admin-api.ts'
import { type Route, toRoute } from './routes.ts'
import { type StateParts, sendState } from './state-routes.ts'

/** What a capability opens. */
export interface Grant {
  readonly session: SessionState
  readonly agent: AgentState
}

/** What all requests to a gateway share. */
export interface HttpParts {
  readonly gateway: GatewayParts
  readonly capabilities: Capabilities<Grant>
  readonly state: StateParts
  /** `null` where the gateway is steered in process only. */
  readonly admin: AdminApi | null
}

/** Throws GATEWAY_OVERLOADED where a session that is no rollout has as many calls under way as it may. */
function checkRoom({ request, calls, recordings }: SessionState, counters: Counters): void {
  if (request.maxCallsInFlight === undefined) return
  // A client that has its answer may ask again while that is still being recorded.
  const unanswered = calls.size - recordings
  if (unanswered < request.maxCallsInFlight) return
  counters.refusals.overloaded++
  const message = `${unanswered} calls are under way, which is maxCallsInFlight; send this one again when one of them has ended.`
  throw new TrainError('GATEWAY_OVERLOADED', message)
}

type OnBody = (body: Buffer | null, error: TrainError | null) => void

function collectCallBody(request: HttpRequest, response: HttpResponse, parts: GatewayParts, ended: OnBody): void {
  const { limits, counters, bodies } = parts
  const { 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding.toLowerCase() !== 'identity') {
    ended(null, badRequest(`The body is compressed ("${encoding.slice(0, 40)}"); send it as it is, without content-encoding.`, null, 415))
    return
  }
  collectBody(request, response, limits.maxBodyBytes, bodies.take, (body, error) => {
    if (!error) return ended(body, null)
    // A client that has ended its side was counted with its socket.
    if (error.reason === 'too-large' || !request.socket.readableEnded) counters.refusals[error.reason]++
    if (error.reason === 'incomplete') ended(null, badRequest(`${error.message}.`))
    else ended(null, badRequest(`${error.message}; shorten the conversation, or raise maxBodyBytes.`, null, 413))
  })
}

async function serveSide(parts: GatewayParts, { agent }: Grant, path: string, request: HttpRequest, response: HttpResponse): Promise<void> {
  const method = request.method ?? ''
  const side = sideRequest(path, method)
  if (!side) {
    parts.counters.refusals['wrong-path']++
    if (dialects.has(path)) throw badRequest(`"${path}" answers POST, not ${request.method}.`, null, 405)
    throw badRequest(`"${path.slice(0, 100)}" is not served; known are /models, ${[...dialects.keys()].join(', ')}.`, null, 404)
  }
  const readBody = () =>
    new Promise<Buffer>((resolve, reject) => {
      collectCallBody(request, response, parts, (body, error) => (body ? resolve(body) : reject(error)))
    })
  const left = new AbortController()
  response.once('close', () => left.abort(badRequest('The client left before its tokens were counted.')))
  const { models, renderWorker } = parts
  const count = (call: ModelCall) => countTokens({ models, agent, renderWorker, signal: left.signal }, call)
  const json = await side({ method, path, readBody, memory: agent.memory, countTokens: count })
  sendText(response, 200, 'application/json', json)
}

/** A request of one agent, and what answers what goes wrong before it is a call. */
interface AgentRequest {
  readonly parts: GatewayParts
  readonly grant: Grant
  readonly dialect: Dialect
  readonly request: HttpRequest
  readonly response: HttpResponse
  readonly fail: (cause: unknown) => void
}

function serveAgent({ parts, grant, dialect, request, response, fail }: AgentRequest): void {
  const { counters, observer } = parts
  const { session, agent } = grant
  checkRoom(session, counters)
  collectCallBody(request, response, parts, (body, error) => {
    if (!body) return fail(error)
    try {
      // The session may have closed while the body came, or others may have taken the room.
      if (session.closing) throw unknownUrl()
      checkRoom(session, counters)
    } catch (cause) {
      fail(cause)
      return
    }
    const { rollout, attempt } = session.request
    const observed = observer.begin({ rollout, attempt, agent: agent.name, dialect: dialect.name }, request.headers)
    serveCall({ parts, session, agent, dialect, body, response, observed })
  })
}

async function answer(parts: HttpParts, route: Route, request: HttpRequest, response: HttpResponse): Promise<void> {
  if (route.kind === 'admin') {
    if (!parts.admin) throw unknownUrl()
    await parts.admin.handle(route.path, request, response)
  } else if (route.kind === 'agent') {
    const grant = parts.capabilities.find(route.capability)
    if (!grant) throw unknownUrl()
    if (route.path === '/models') await sendState('models', parts.state, response)
    else await serveSide(parts.gateway, grant, route.path, request, response)
  } else if (route.kind === 'unknown') throw unknownUrl()
  else await sendState(route.kind, parts.state, response)
}

/** What the requests of one connection have asked for last: most ask for it again. */
interface LastRequest {
  readonly url: string
  readonly route: Route
  readonly grant: Grant
}

/** Answers HTTP requests; errors have the shape of the dialect that is asked, else OpenAI's. */
export function createRequestHandler(parts: HttpParts): (request: HttpRequest, response: HttpResponse) => void {
  const last = new WeakMap<Socket, LastRequest>()

  function find(request: HttpRequest): { readonly route: Route; readonly grant: Grant | undefined } {
    const { url = '', socket } = request
    const known = last.get(socket)
    if (known && known.url === url && !known.grant.session.closing) return known
    const { authorization, 'x-api-key': apiKey } = request.headers
    const route = toRoute(url, authorization, apiKey)
    const grant = route.kind === 'agent' ? parts.capabilities.find(route.capability) : undefined
    // Elsewhere a header is the capability, which may be another in the next request.
    if (grant && url.startsWith('/r/')) last.set(socket, { url, route, grant })
    return { route, grant }
  }

  return (request, response) => {
    const { route, grant } = find(request)
    const fail = (cause: unknown) => {
      const error = cause instanceof TrainError ? cause : new TrainError('GATEWAY_FAILED', `The gateway failed: ${cause}`, { cause })
      const { refusals } = parts.gateway.counters
      if (error.code === 'GATEWAY_UNAUTHORIZED') refusals['unknown-url']++
      if (error.code === 'SERVICE_UNAUTHORIZED') refusals.unauthorized++
      const dialect = route.kind === 'agent' ? dialectOf(route.path) : chatCompletions
      sendFailure(dialect, response, toHttpFailure(error, { sampled: false }), false)
      if (!request.complete) discardBody(request)
    }
    const dialect = grant && route.kind === 'agent' && request.method === 'POST' ? dialects.get(route.path) : undefined
    if (!dialect || !grant) {
      answer(parts, route, request, response).catch(fail)
      return
    }
    try {
      serveAgent({ parts: parts.gateway, grant, dialect, request, response, fail })
    } catch (cause) {
      fail(cause)
    }
  }
}
