import { randomUUID } from 'node:crypto'
import { type HttpRequest, type HttpResponse, type PolicySession, plainTrajectory, type SessionRequest } from '@aworld-train/core'
import { SessionOpening, TrainError, type Trajectory, toTrainError } from '@aworld-train/protocol'
import { badRequest } from '../failure.ts'
import type { AdminOptions } from '../options.ts'
import { readJson } from './read-json.ts'
import { sendAdmin as send } from './send-admin.ts'

/** Sessions over HTTP, for agents that another program runs. */
export interface SessionsApi {
  /** Answers `POST /v1/sessions`, and GET and DELETE of `/v1/sessions/{id}`. Rejects with the error to answer. */
  handle(path: string, request: HttpRequest, response: HttpResponse): Promise<void>
  close(): void
}

interface Opened {
  readonly request: SessionRequest
  readonly session: PolicySession
  timer: NodeJS.Timeout
  status: 'open' | 'expired' | 'closed'
  record: Promise<readonly Trajectory[]> | null
}

export function createSessionsApi(
  admin: AdminOptions,
  open: (request: SessionRequest) => PolicySession,
  defaultPolicy: string,
): SessionsApi {
  const { onTurn, maxSessions = 10_000, keptMs = 600_000 } = admin
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

  async function post(request: HttpRequest, response: HttpResponse): Promise<void> {
    if (sessions.size >= maxSessions) {
      const message = `${sessions.size} sessions are open or kept; close some with DELETE, or try again later.`
      throw new TrainError('GATEWAY_OVERLOADED', message, { details: { retryAfterSeconds: 1 } })
    }
    const {
      timeoutMs,
      rollout = randomUUID(),
      taskId = rollout,
      policy = defaultPolicy,
      ...opening
    } = await readJson({
      request,
      response,
      schema: SessionOpening,
      what: 'The session cannot be opened.',
    })
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

  async function sendRecord(response: HttpResponse, id: string, opened: Opened): Promise<void> {
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
