import type { IncomingMessage, ServerResponse } from 'node:http'
import { TrainError } from '@aworld-train/protocol'
import type { Capabilities } from '../capability.ts'
import { toMetrics } from '../counters.ts'
import { chatCompletions } from '../dialects/chat-completions/index.ts'
import { dialects } from '../dialects/index.ts'
import { badRequest, toHttpFailure, unknownUrl } from '../failure.ts'
import { type GatewayParts, serveCall } from '../serve-call.ts'
import type { AgentState, SessionState } from '../session-state.ts'
import { sendFailure, sendText } from '../stages/encode.ts'
import { readBody } from './read-body.ts'
import { type Route, toRoute } from './routes.ts'

/** What a capability opens. */
export interface Grant {
  readonly session: SessionState
  readonly agent: AgentState
}

function sendJson(response: ServerResponse, value: unknown): void {
  sendText(response, 200, 'application/json', JSON.stringify(value))
}

function sendModels({ models }: GatewayParts, response: ServerResponse): void {
  const data = models.all.map((model) => {
    const entry = { id: model.name, object: 'model', created: 0, owned_by: 'aworld-train' }
    return model.kind === 'frozen' ? entry : { ...entry, max_model_len: model.engine.model.contextLength }
  })
  sendJson(response, { object: 'list', data })
}

function sendState(kind: Exclude<Route['kind'], 'agent' | 'unknown'>, parts: GatewayParts, response: ServerResponse): void {
  const { models, gate, counters } = parts
  const inFlight = gate.inside()
  const waiting = gate.waiting()
  const weightVersion = models.weightVersion()
  if (kind === 'models') {
    sendModels(parts, response)
  } else if (kind === 'health') {
    sendJson(response, { status: gate.paused() ? 'paused' : 'ok', inFlight, waiting, weightVersion })
  } else {
    const gauges = { in_flight: inFlight, waiting, paused: Number(gate.paused()), weight_version: weightVersion }
    sendText(response, 200, 'text/plain; version=0.0.4; charset=utf-8', toMetrics(counters, gauges))
  }
}

async function serveAgent(
  parts: GatewayParts,
  grant: Grant,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const dialect = dialects.get(path)
  if (!dialect) throw badRequest(`"${path}" is not served; known are /models, ${[...dialects.keys()].join(', ')}.`, null, 404)
  if (request.method !== 'POST') throw badRequest(`"${path}" answers POST, not ${request.method}.`, null, 405)
  const body = await readBody(request, parts.limits.maxBodyBytes)
  // The session may have closed while the body came.
  if (grant.session.closing) throw unknownUrl()
  await serveCall({ parts, ...grant, dialect, body, response })
}

/** Answers one HTTP request; errors have the shape of the dialect that is asked, else OpenAI's. */
export async function handleRequest(
  parts: GatewayParts,
  capabilities: Capabilities<Grant>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const route = toRoute(request.url ?? '', request.headers.authorization)
  try {
    if (route.kind !== 'agent') {
      if (route.kind === 'unknown') throw unknownUrl()
      sendState(route.kind, parts, response)
      return
    }
    const grant = capabilities.find(route.capability)
    if (!grant) throw unknownUrl()
    if (route.path === '/models') sendModels(parts, response)
    else await serveAgent(parts, grant, route.path, request, response)
  } catch (cause) {
    const error = cause instanceof TrainError ? cause : new TrainError('GATEWAY_FAILED', `The gateway failed: ${cause}`, { cause })
    if (error.code === 'GATEWAY_UNAUTHORIZED') parts.counters.refused++
    const dialect = (route.kind === 'agent' && dialects.get(route.path)) || chatCompletions
    sendFailure(dialect, response, toHttpFailure(error, { sampled: false }), false)
  }
}
