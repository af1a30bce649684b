import type { IncomingMessage, ServerResponse } from 'node:http'
import { type PolicySession, type SessionRequest, TrainError } from '@aworld-train/core'
import { createBearerCheck } from '@aworld-train/http'
import type { ModelTable } from '../models/model-table.ts'
import type { AdminOptions } from '../options.ts'
import { weightsPath } from './routes.ts'
import { createSessionsApi } from './sessions-api.ts'
import { createWeightsApi } from './weights-api.ts'

/** The part of the HTTP side that controls the gateway. The admin token opens it, and the capability of a rollout never does. */
export interface AdminApi {
  /** Answers a request for sessions or weights. Rejects with the error to send. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): void
}

export interface AdminApiOptions {
  readonly admin: AdminOptions
  readonly open: (request: SessionRequest) => PolicySession
  readonly models: ModelTable
}

/** Throws CONFIG_INVALID for a token that is too short. */
export function createAdminApi({ admin, open, models }: AdminApiOptions): AdminApi {
  const { token, weights = {} } = admin
  if (token.length < 16) throw new TrainError('CONFIG_INVALID', 'The admin token is shorter than 16 characters; take a random one.')
  const authorized = createBearerCheck(token)
  const sessionsApi = createSessionsApi(admin, open, models.standard.name)
  const weightsApi = createWeightsApi(weights, models)
  return {
    async handle(path, request, response) {
      if (!authorized(request.headers.authorization)) {
        throw new TrainError('SERVICE_UNAUTHORIZED', 'The admin token is missing or wrong; send it as "Authorization: Bearer …".')
      }
      await (weightsPath.test(path) ? weightsApi : sessionsApi).handle(path, request, response)
    },
    close() {
      sessionsApi.close()
      weightsApi.close()
    },
  }
}
