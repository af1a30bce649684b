import {
  type ChatCall,
  type ChatEngine,
  type EngineHealth,
  type LogprobKind,
  type Sampling,
  spliceMembers,
  TrainError,
} from '@aworld-train/core'
import { fleetHealth } from '../fleet/fleet-health.ts'
import type { Fleet, FleetCall } from '../fleet/fleet-types.ts'

/** A chat engine over servers. If it shares its fleet, the fleet's creator closes the fleet. */
export interface RemoteChatEngine extends ChatEngine {
  readonly fleet: Fleet
  health(): EngineHealth
}

export interface ChatEngineParts {
  readonly fleet: Fleet
  readonly ownsFleet: boolean
  readonly model: { readonly name: string; readonly contextLength: number }
  readonly policy: string | undefined
  readonly logprobs: LogprobKind
  readonly reader: URL
  readonly splice: (sampling: Sampling) => string
}

export function createChatEngine({ fleet, ownsFleet, model, policy, logprobs, reader, splice }: ChatEngineParts): RemoteChatEngine {
  let closed = false
  const isClosed = () => new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)
  const toFleetCall = ({ body, stream, affinity, traceHeaders }: ChatCall): FleetCall => ({
    path: '/v1/chat/completions',
    body: ({ salt }) => spliceMembers(body, `"cache_salt":${JSON.stringify(salt)}`),
    stream,
    affinity,
    policy,
    traceHeaders,
  })
  return {
    name: fleet.kind.name,
    model,
    fleet,
    logprobs,
    reader,
    splice,
    async send(call, handler, signal) {
      if (closed) throw isClosed()
      signal.throwIfAborted()
      return fleet.send(toFleetCall(call), handler, signal)
    },
    weightVersion: () => fleet.weightVersion(policy),
    forget: (affinity) => fleet.forget(affinity),
    health: () => fleetHealth(fleet),
    async close() {
      closed = true
      if (ownsFleet) await fleet.close()
    },
  }
}
