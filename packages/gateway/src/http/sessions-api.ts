import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type PolicySession,
  plainTrajectory,
  SessionOpening,
  type SessionRecord,
  type SessionRequest,
  TrainError,
  type Trajectory,
  toTrainError,
} from '@aworld-train/core'
import { checkMethod } from '../failure.ts'
import type { AdminOptions } from '../options.ts'
import { createKeptRecords } from './kept-records.ts'
import { readAdminBody } from './read-admin-body.ts'
import { sendAdmin } from './send-admin.ts'

/** Sessions over HTTP, for agents that other programs run. */
export interface SessionsApi {
  /** Answers `POST /v1/sessions`, and GET and DELETE of `/v1/sessions/{id}`. Rejects with the error to send. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): void
}

interface OpenSession {
  readonly request: SessionRequest
  readonly session: PolicySession
  readonly expiresAt: number
  readonly timer: NodeJS.Timeout
  /** Resolves to the answer with the final record; `null` until the session ends. */
  ended: Promise<Buffer> | null
}

const defaultMaxKeptBytes = 256 * 1024 * 1024

export function createSessionsApi(
  admin: AdminOptions,
  open: (request: SessionRequest) => PolicySession,
  defaultPolicy: string,
): SessionsApi {
  const { onTurn, maxSessions = 10_000, maxKeptBytes = defaultMaxKeptBytes, keptMs = 600_000 } = admin
  const sessions = new Map<string, OpenSession>()
  const kept = createKeptRecords({ maxBytes: maxKeptBytes, keptMs })

  function toRecord(
    id: string,
    status: SessionRecord['status'],
    { request, session }: OpenSession,
    trajectories: readonly Trajectory[],
  ): Buffer {
    const { rollout, attempt } = request
    const error = session.failure()
    const failure = error ? toTrainError(error, 'GATEWAY_FAILED').toRecord() : null
    return Buffer.from(
      JSON.stringify({ version: 1, id, status, rollout, attempt, trajectories: trajectories.map(plainTrajectory), failure }),
    )
  }

  /** Closes the session once. The record is kept for a while, so that a client whose answer was lost can ask again. */
  function end(id: string, opened: OpenSession, status: 'expired' | 'closed'): Promise<Buffer> {
    clearTimeout(opened.timer)
    opened.ended ??= opened.session
      .close()
      .then((trajectories) => {
        const record = toRecord(id, status, opened, trajectories)
        kept.add(id, record)
        return record
      })
      .finally(() => sessions.delete(id))
    return opened.ended
  }

  /** Throws GATEWAY_OVERLOADED if no more sessions may be open. */
  function checkRoom(): void {
    if (sessions.size < maxSessions) return
    const expiresAt = Math.min(...Array.from(sessions.values(), (opened) => opened.expiresAt))
    const retryAfterSeconds = Math.max(1, Math.ceil((expiresAt - Date.now()) / 1_000))
    const message = `${sessions.size} sessions are open, which is maxSessions; close those that are done with DELETE /v1/sessions/{id}. Unless one is closed before, the first ends by itself in ${retryAfterSeconds} s.`
    throw new TrainError('GATEWAY_OVERLOADED', message, { details: { retryAfterSeconds } })
  }

  async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const {
      timeoutMs,
      rollout = randomUUID(),
      taskId = rollout,
      policy = defaultPolicy,
      maxTokens: maxSessionTokens,
      ...opening
    } = await readAdminBody({
      request,
      response,
      schema: SessionOpening,
      what: 'The session cannot be opened.',
    })
    checkRoom()
    const id = randomUUID()
    const sessionRequest: SessionRequest = {
      ...opening,
      // These agents are programs of any kind, whose calls may come in another order each time.
      agents: opening.agents.map((agent) => ({ ...agent, randomKey: 'prompt' })),
      rollout,
      taskId,
      policy,
      maxSessionTokens,
      ...(onTurn && { onTurn: (_, turn) => onTurn({ rollout, attempt: opening.attempt, agent: turn.agent, turn }) }),
    }
    const session = open(sessionRequest)
    const expiresAt = Date.now() + timeoutMs
    const opened: OpenSession = {
      request: sessionRequest,
      session,
      expiresAt,
      // A later request for a record that could not be made is answered as one for an unknown session.
      timer: setTimeout(() => end(id, opened, 'expired').catch(() => {}), timeoutMs),
      ended: null,
    }
    sessions.set(id, opened)
    const agents = Object.fromEntries(opening.agents.map(({ name }) => [name, session.endpoint(name)]))
    sendAdmin(response, 201, JSON.stringify({ version: 1, id, expiresAt, agents }))
  }

  /** The record so far; the whole record if the session has ended or ends with this. */
  async function recordOf(id: string, close: boolean): Promise<Buffer> {
    const opened = sessions.get(id)
    if (!opened) return kept.find(id)
    if (opened.ended || close) return await end(id, opened, 'closed')
    return toRecord(id, 'open', opened, opened.session.trajectories())
  }

  return {
    async handle(path, request, response) {
      const { method } = request
      if (path === '/sessions') {
        checkMethod('/v1/sessions', method, ['POST'])
        await post(request, response)
        return
      }
      checkMethod('/v1/sessions/{id}', method, ['GET', 'HEAD', 'DELETE'])
      sendAdmin(response, 200, await recordOf(path.slice('/sessions/'.length), method === 'DELETE'))
    },
    close() {
      for (const { timer } of sessions.values()) clearTimeout(timer)
      sessions.clear()
      kept.close()
    },
  }
}
