import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyError, createBearerCheck, type PolicySession, plainTrajectory, readBody, type SessionRequest } from '@aworld-train/core'
import { SessionOpening, TrainError, type Trajectory, toTrainError } from '@aworld-train/protocol'
import { badRequest } from '../failure.ts'
import type { AdminOptions } from '../options.ts'
import { sendText } from '../stages/encode.ts'

/** Sessions over HTTP, for agents that another program runs; guarded by the admin token, never by a rollout's capability. */
export interface SessionsApi {
  /** Answers `POST /v1/sessions`, and GET and DELETE of `/v1/sessions/{id}`. Rejects with the error to answer. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): void
}

interface Opened {
  readonly request: SessionRequest
  readonly session: PolicySession
  timer: NodeJS.Timeout
  status: 'open' | 'expired' | 'closed'
  record: Promise<readonly Trajectory[]> | null
}

/** A request of this API is a page of text; its largest part is the list of agents. */
const maxBodyBytes = 1024 * 1024
const shownProblems = 5

async function readOpening(request: IncomingMessage, response: ServerResponse): Promise<SessionOpening> {
  let body: Buffer
  try {
    body = await readBody(request, response, maxBodyBytes)
  } catch (cause) {
    if (!(cause instanceof BodyError)) throw cause
    throw badRequest(`${cause.message}.`, null, cause.reason === 'too-large' ? 413 : 400)
  }
  let json: unknown
  try {
    json = body.length === 0 ? {} : JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw badRequest(`The body is not valid JSON: ${cause instanceof Error ? cause.message : cause}. Send an object, or nothing.`)
  }
  const parsed = SessionOpening.safeParse(json)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.slice(0, shownProblems)
  const text = problems.map(({ path, message }) => `${path.join('.') || 'the body'}: ${message}`).join('; ')
  throw badRequest(`The session cannot be opened. ${text}.`, problems[0]!.path.join('.') || null)
}

export function createSessionsApi(
  admin: AdminOptions,
  open: (request: SessionRequest) => PolicySession,
  defaultPolicy: string,
): SessionsApi {
  const { token, onTurn, maxSessions = 10_000, keptMs = 600_000 } = admin
  if (token.length < 16) throw new TrainError('CONFIG_INVALID', 'The admin token is shorter than 16 characters; take a random one.')
  const authorized = createBearerCheck(token)
  const sessions = new Map<string, Opened>()

  /** Closes once; the record is kept for a while, so that an answer that was lost can be asked for again. */
  function end(id: string, opened: Opened, status: 'expired' | 'closed'): Promise<readonly Trajectory[]> {
    if (!opened.record) {
      clearTimeout(opened.timer)
      opened.status = status
      opened.record = opened.session.close()
      opened.timer = setTimeout(() => sessions.delete(id), keptMs)
    }
    return opened.record
  }

  function send(response: ServerResponse, status: number, value: object): void {
    sendText(response, status, 'application/json', JSON.stringify(value), { 'cache-control': 'no-store' })
  }

  async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (sessions.size >= maxSessions) {
      const message = `${sessions.size} sessions are open or kept; close some with DELETE, or try again later.`
      throw new TrainError('GATEWAY_OVERLOADED', message, { details: { retryAfterSeconds: 1 } })
    }
    const { timeoutMs, rollout = randomUUID(), taskId = rollout, policy = defaultPolicy, ...opening } = await readOpening(request, response)
    const id = randomUUID()
    const sessionRequest: SessionRequest = {
      ...opening,
      rollout,
      taskId,
      policy,
      ...(onTurn && { onTurn: (agent, turn) => onTurn({ rollout, attempt: opening.attempt, agent, turn }) }),
    }
    const session = open(sessionRequest)
    const opened: Opened = {
      request: sessionRequest,
      session,
      status: 'open',
      record: null,
      timer: setTimeout(() => void end(id, opened, 'expired'), timeoutMs),
    }
    sessions.set(id, opened)
    const agents = Object.fromEntries(opening.agents.map(({ name }) => [name, session.endpoint(name)]))
    send(response, 201, { version: 1, id, expiresAt: Date.now() + timeoutMs, agents })
  }

  async function sendRecord(response: ServerResponse, id: string, opened: Opened): Promise<void> {
    const { request, session, record } = opened
    const trajectories = record ? await record : session.trajectories()
    const failure = session.failure()
    send(response, 200, {
      version: 1,
      id,
      status: opened.status,
      rollout: request.rollout,
      attempt: request.attempt,
      trajectories: trajectories.map(plainTrajectory),
      failure: failure ? toTrainError(failure, 'GATEWAY_FAILED').toRecord() : null,
    })
  }

  return {
    async handle(path, request, response) {
      if (!authorized(request.headers.authorization)) {
        throw new TrainError('SERVICE_UNAUTHORIZED', 'The admin token is missing or wrong; send it as "Authorization: Bearer …".')
      }
      const { method } = request
      if (path === '/v1/sessions') {
        if (method !== 'POST') throw badRequest(`/v1/sessions answers POST, not ${method}.`, null, 405)
        await post(request, response)
        return
      }
      const id = path.slice('/v1/sessions/'.length)
      const opened = sessions.get(id)
      if (!opened) throw badRequest('There is no such session; it was never opened, or its record is no longer kept.', null, 404)
      if (method !== 'GET' && method !== 'DELETE') throw badRequest(`A session answers GET and DELETE, not ${method}.`, null, 405)
      if (method === 'DELETE') await end(id, opened, 'closed')
      await sendRecord(response, id, opened)
    },
    close() {
      for (const { timer } of sessions.values()) clearTimeout(timer)
      sessions.clear()
    },
  }
}
