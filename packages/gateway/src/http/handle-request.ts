import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RunWork } from '@aworld-train/chat'
import { placeForm, TrainError } from '@aworld-train/core'
import { BodyError, discardBody, readBody } from '@aworld-train/http'
import type { Dialect } from '../call.ts'
import type { Capabilities } from '../capability.ts'
import { countTokens } from '../count-tokens.ts'
import type { Counters } from '../counters.ts'
import { dialectOf, dialects } from '../dialects/index.ts'
import { sideRequest } from '../dialects/side-requests.ts'
import { badRequest, bodyTooLarge, checkMethod, toHttpFailure, unknownUrl } from '../failure.ts'
import type { FixedAddresses } from '../fixed-addresses.ts'
import type { ModelTable } from '../models/model-table.ts'
import { largestBodyBytes } from '../models/size-limits.ts'
import { peekFields } from '../pass-through/peek-fields.ts'
import { serveCall } from '../serve-call.ts'
import type { GatewayParts } from '../served-call.ts'
import { type AgentState, type SessionState, stateAt } from '../session-state.ts'
import { decode } from '../stages/decode.ts'
import { sendFailure, sendText } from '../stages/encode.ts'
import type { AdminApi } from './admin-api.ts'
import { isModels, type Route, toRoute } from './routes.ts'
import { sendModels } from './send-models.ts'
import { type StateParts, sendState } from './state-routes.ts'

/** The agent and session that a capability opens. */
export interface Grant {
  readonly session: SessionState
  readonly agent: AgentState
}

/** Parts that all requests to a gateway share. */
export interface HttpParts {
  readonly gateway: GatewayParts
  readonly capabilities: Capabilities<Grant>
  readonly addresses: FixedAddresses<Grant>
  readonly state: StateParts
  /** `null` if the gateway is controlled only from its own process. */
  readonly admin: AdminApi | null
}

/** Throws GATEWAY_OVERLOADED if a session that is no rollout has its most calls under way. */
function checkRoom({ request, calls, recordings }: SessionState, counters: Counters): void {
  if (request.maxCallsInFlight === undefined) return
  // A client may call again as soon as it has its answer, even while that answer is still being recorded.
  const unanswered = calls.size - recordings
  if (unanswered < request.maxCallsInFlight) return
  counters.refusals.overloaded++
  const message = `${unanswered} calls are under way, which is maxCallsInFlight; send this one again when one of them has ended.`
  throw new TrainError('GATEWAY_OVERLOADED', message)
}

async function readCallBody(
  request: IncomingMessage,
  response: ServerResponse,
  { limits, counters, models }: GatewayParts,
): Promise<Buffer> {
  const { 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding.toLowerCase() !== 'identity')
    throw badRequest(`The body is compressed ("${encoding.slice(0, 40)}"); send it as it is, without content-encoding.`, null, 415)
  const maxBytes = limits.maxBodyBytes ?? largestBodyBytes(models)
  try {
    return await readBody(request, response, maxBytes)
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    // If the client has closed its side, the refusal was already counted with its socket.
    if (error.reason === 'too-large' || !request.socket.readableEnded) counters.refusals[error.reason]++
    if (error.reason === 'incomplete') throw badRequest(`${error.message}.`)
    throw bodyTooLarge(maxBytes)
  }
}

/** A request that is being answered. */
interface Exchange {
  readonly id: string
  readonly route: Route
  /** The dialect of the answer. */
  readonly dialect: Dialect
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

async function serveSide(parts: GatewayParts, { session, agent: first }: Grant, { route, request, response }: Exchange): Promise<void> {
  const { path } = route
  const { method = '' } = request
  const side = sideRequest(path)
  if (!side) {
    parts.counters.refusals['wrong-path']++
    throw badRequest(`"${path.slice(0, 100)}" is not served; known are /models, ${[...dialects.keys()].join(', ')}.`, null, 404)
  }
  const { models, encoder, pacer } = parts
  const disconnection = new AbortController()
  const { signal } = disconnection
  response.once('close', () => disconnection.abort(badRequest('The client left before its tokens were counted.')))
  const run: RunWork = (work) => pacer.run(session, signal, work)
  const json = await side({
    method,
    path,
    memory: stateAt(session, first, placeOf(route)).memory,
    async countTokens(dialect) {
      const body = await readCallBody(request, response, parts)
      const agent = agentOfCall(models, { session, agent: first }, route, body)
      const call = await run(() => decode(dialect, body, agent.memory))
      return await countTokens({ models, session, agent, encoder, run, signal }, call)
    },
  })
  sendText(response, 200, 'application/json', json)
}

async function serveAgent(parts: GatewayParts, grant: Grant, exchange: Exchange): Promise<void> {
  const { session } = grant
  const { id: requestId, dialect, request, response } = exchange
  const { counters, observer } = parts
  checkRoom(session, counters)
  const body = await readCallBody(request, response, parts)
  // While the body arrived, the session may have closed, or other calls may have taken the last place.
  if (session.closing) throw unknownUrl()
  checkRoom(session, counters)
  const { rollout, attempt, traceHeaders: trace } = session.request
  const agent = agentOfCall(parts.models, grant, exchange.route, body)
  const identity = { rollout, attempt, agent: agent.name, trajectory: agent.id, dialect: dialect.name, requestId, trace }
  const observed = observer.begin(identity, request.headers)
  serveCall({ parts, session, agent, dialect, body, response, observed, requestId })
}

/**
 * The invocation that a call is of. A program whose agents share one address tells them apart by the model that each asks for: if no model
 * has that name and an agent of the session has, the call is of that agent, at the same place.
 */
function agentOfCall(models: ModelTable, { session, agent }: Grant, route: Route, body: Buffer): AgentState {
  const { agents } = session.request
  const isShared = agent.promptCounts !== null && !agent.fixed && agents.length > 1
  const model = isShared ? peekFields(body).model : undefined
  const other = agents.find(({ name }) => name === model && !models.isNamed(name))
  return stateAt(session, other ? session.agents.get(other.name)! : agent, placeOf(route))
}

const placeOf = (route: Route): string => (route.kind === 'agent' ? (route.place ?? '') : '')

const reading = ['GET', 'HEAD']

/**
 * Finds the agent that the URL and its key open, if any. Throws SERVICE_UNAUTHORIZED for a wrong key of a fixed address, and
 * GATEWAY_BAD_REQUEST for a place that is none.
 */
function findGrant({ capabilities, addresses }: HttpParts, route: Route): Grant | null {
  if (route.kind !== 'agent' && route.kind !== 'address') return null
  if (route.kind === 'agent') {
    const grant = capabilities.find(route.capability)
    if (!grant || route.place === '') return grant ?? null
    if (route.place === null) throw badRequest(`The URL names an invocation by a text that is no place; give it ${placeForm}.`)
    return grant.session.closing ? null : grant
  }
  const { address, key } = route
  const byKey = address === '' && key !== null ? capabilities.find(key) : undefined
  return byKey ?? addresses.find(address, key) ?? null
}

async function answer(parts: HttpParts, exchange: Exchange): Promise<void> {
  const { route, dialect, request, response } = exchange
  const { kind, path } = route
  const grant = findGrant(parts, route)
  const isAgent = kind === 'agent' || kind === 'address'
  if (kind === 'unknown' || (isAgent && !grant) || (kind === 'admin' && !parts.admin)) throw unknownUrl()
  if (kind === 'admin') await parts.admin?.handle(path, request, response)
  else if (isModels(path)) {
    checkMethod(path, request.method, reading)
    sendModels(parts.state.models, dialect, path, request, response)
  } else if (kind === 'health' || kind === 'ready' || kind === 'metrics') {
    checkMethod(path, request.method, reading)
    await sendState(kind, parts.state, response)
  } else if (grant && dialects.has(path)) {
    checkMethod(path, request.method, ['POST'])
    await serveAgent(parts.gateway, grant, exchange)
  } else if (grant) await serveSide(parts.gateway, grant, exchange)
}

/** Answers HTTP requests. Errors have the shape of the requested dialect, and every answer carries the id of its request. */
export function createRequestHandler(parts: HttpParts): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const { authorization, 'x-api-key': apiKey } = request.headers
    const route = toRoute(request.url ?? '', authorization, apiKey)
    const dialect = dialectOf(route.path, request.headers)
    const id = `req_${randomUUID().replaceAll('-', '')}`
    response.setHeader(dialect.requestIdHeader, id)
    answer(parts, { id, route, dialect, request, response }).catch((cause: unknown) => {
      const error = cause instanceof TrainError ? cause : new TrainError('GATEWAY_FAILED', `The gateway failed: ${cause}`, { cause })
      const { refusals } = parts.gateway.counters
      if (error.code === 'GATEWAY_UNAUTHORIZED') refusals['unknown-url']++
      if (error.code === 'SERVICE_UNAUTHORIZED') refusals.unauthorized++
      const failure = toHttpFailure(error, { sampled: false, requestId: id })
      if (failure.allow !== undefined) refusals['wrong-path']++
      sendFailure(dialect, response, failure, false)
      if (!request.complete) discardBody(request)
    })
  }
}
