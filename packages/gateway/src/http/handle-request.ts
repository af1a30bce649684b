import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyError, discardBody, readBody } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import type { ModelCall } from '../call.ts'
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
  const unanswered = calls.size - recordings.size
  if (unanswered < request.maxCallsInFlight) return
  counters.refusals.overloaded++
  const message = `${unanswered} calls are under way; try again when one has ended.`
  throw new TrainError('GATEWAY_OVERLOADED', message, { details: { retryAfterSeconds: 1 } })
}

async function readCallBody(
  request: IncomingMessage,
  response: ServerResponse,
  { limits, counters, bodies }: GatewayParts,
): Promise<Buffer> {
  try {
    return await readBody(request, response, limits.maxBodyBytes, bodies.take)
  } catch (cause) {
    if (!(cause instanceof BodyError)) throw cause
    // A client that has ended its side was counted with its socket.
    if (cause.reason === 'too-large' || !request.socket.readableEnded) counters.refusals[cause.reason]++
    if (cause.reason === 'incomplete') throw badRequest(`${cause.message}.`)
    throw badRequest(`${cause.message}; shorten the conversation, or raise maxBodyBytes.`, null, 413)
  }
}

async function serveAgent(parts: GatewayParts, grant: Grant, path: string, request: IncomingMessage, response: ServerResponse) {
  const { counters, observer } = parts
  const { session, agent } = grant
  const dialect = dialects.get(path)
  const side = sideRequest(path, request.method ?? '')
  if (side) {
    const readBody = () => readCallBody(request, response, parts)
    const count = (call: ModelCall) => countTokens(parts.models, agent, call)
    const json = await side({ method: request.method ?? '', path, readBody, memory: agent.memory, countTokens: count })
    sendText(response, 200, 'application/json', json)
    return
  }
  if (!dialect || request.method !== 'POST') {
    counters.refusals['wrong-path']++
    if (dialect) throw badRequest(`"${path}" answers POST, not ${request.method}.`, null, 405)
    throw badRequest(`"${path.slice(0, 100)}" is not served; known are /models, ${[...dialects.keys()].join(', ')}.`, null, 404)
  }
  checkRoom(session, counters)
  const body = await readCallBody(request, response, parts)
  // The session may have closed while the body came, or others may have taken the room.
  if (session.closing) throw unknownUrl()
  checkRoom(session, counters)
  const { rollout, attempt } = session.request
  const observed = observer.begin({ rollout, attempt, agent: agent.name, dialect: dialect.name }, request.headers)
  await serveCall({ parts, session, agent, dialect, body, response, observed })
}

async function answer(parts: HttpParts, route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (route.kind === 'admin') {
    if (!parts.admin) throw unknownUrl()
    await parts.admin.handle(route.path, request, response)
  } else if (route.kind === 'agent') {
    const grant = parts.capabilities.find(route.capability)
    if (!grant) throw unknownUrl()
    if (route.path === '/models') await sendState('models', parts.state, response)
    else await serveAgent(parts.gateway, grant, route.path, request, response)
  } else if (route.kind === 'unknown') throw unknownUrl()
  else await sendState(route.kind, parts.state, response)
}

/** Answers one HTTP request; errors have the shape of the dialect that is asked, else OpenAI's. */
export async function handleRequest(parts: HttpParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization, 'x-api-key': apiKey } = request.headers
  const route = toRoute(request.url ?? '', authorization, apiKey)
  try {
    await answer(parts, route, request, response)
  } catch (cause) {
    const error = cause instanceof TrainError ? cause : new TrainError('GATEWAY_FAILED', `The gateway failed: ${cause}`, { cause })
    const { refusals } = parts.gateway.counters
    if (error.code === 'GATEWAY_UNAUTHORIZED') refusals['unknown-url']++
    if (error.code === 'SERVICE_UNAUTHORIZED') refusals.unauthorized++
    const dialect = route.kind === 'agent' ? dialectOf(route.path) : chatCompletions
    sendFailure(dialect, response, toHttpFailure(error, { sampled: false }), false)
    if (!request.complete) discardBody(request)
  }
}
