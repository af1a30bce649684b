import type { ServerResponse } from 'node:http'
import type { SessionRequest } from '@aworld-train/core'
import { createGateway } from '../gateway.ts'
import type { FrozenRoute } from '../models/routes.ts'
import type { GatewayOptions } from '../options.ts'
import { post, sessionRequest } from './start-gateway.ts'
import { startThirdParty, type ThirdPartyCall } from './third-party.ts'

/** How the third party answers, and what differs from the defaults. */
interface OpenFrozenOptions {
  readonly answer: (call: ThirdPartyCall, response: ServerResponse, index: number) => void
  readonly route?: Partial<FrozenRoute>
  readonly session?: Partial<SessionRequest>
  readonly gateway?: Partial<GatewayOptions>
}

/** A gateway with a session whose policy is a third party's model, `solver`. */
export async function openFrozen({ answer, route, session: overrides, gateway: options }: OpenFrozenOptions) {
  const party = await startThirdParty(answer)
  const solver: FrozenRoute = { kind: 'frozen', baseUrl: party.url, dialect: 'chat-completions', model: 'large', ...route }
  const gateway = await createGateway({ models: { solver }, aliases: { '*': 'solver' }, seed: 1, ...options })
  const request = (more: Partial<SessionRequest> = {}) =>
    sessionRequest({ policy: 'solver', agents: [{ name: 'agent', trainable: false }], ...overrides, ...more })
  const session = gateway.open(request())
  return {
    party,
    gateway,
    session,
    /** Opens another session, which differs by `more`. */
    open: (more: Partial<SessionRequest>) => gateway.open(request(more)),
    ask: (more: object = {}, init: RequestInit = {}) =>
      post(session.endpoint('agent'), { messages: [{ role: 'user', content: 'Is 79 right?' }], ...more }, init),
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await party[Symbol.asyncDispose]()
    },
  }
}
