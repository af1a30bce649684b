import type { ChatCall, ChatEngine, EngineHealth } from '@aworld-train/core'
import { type LogprobKind, type Sampling, TrainError } from '@aworld-train/protocol'
import { fleetHealth } from '../fleet/fleet-health.ts'
import type { Fleet, FleetCall } from '../fleet/fleet-types.ts'

/** A chat engine over servers; whoever shares its fleet with another engine closes the fleet. */
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

const opening = 0x7b
const closing = 0x7d

/** Index behind the last byte before `end` that is no white space; 0 where there is none. */
function endOfText(piece: Uint8Array, end: number): number {
  let at = end
  while (at > 0 && piece[at - 1]! <= 0x20) at--
  return at
}

/** The pieces of a JSON object with a member more at its end; nothing is copied. GATEWAY_BAD_REQUEST where it ends with no brace. */
export function withMember(pieces: readonly Uint8Array[], member: string): readonly Uint8Array[] {
  let last = pieces.length - 1
  let end = last < 0 ? 0 : endOfText(pieces[last]!, pieces[last]!.length)
  const back = () => {
    while (end === 0 && last > 0) {
      last--
      end = endOfText(pieces[last]!, pieces[last]!.length)
    }
  }
  back()
  if (end === 0 || pieces[last]![end - 1] !== closing)
    throw new TrainError('GATEWAY_BAD_REQUEST', 'The body of a chat call ends without a brace; send one JSON object.')
  end = endOfText(pieces[last]!, end - 1)
  back()
  const isEmpty = end === 0 || pieces[last]![end - 1] === opening
  const kept = pieces.slice(0, last)
  if (end > 0) kept.push(pieces[last]!.subarray(0, end))
  kept.push(Buffer.from(isEmpty ? `${member}}` : `,${member}}`, 'utf8'))
  return kept
}

export function createChatEngine({ fleet, ownsFleet, model, policy, logprobs, reader, splice }: ChatEngineParts): RemoteChatEngine {
  let closed = false
  const isClosed = () => new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)
  const toFleetCall = ({ body, stream, affinity, traceHeaders }: ChatCall): FleetCall => ({
    path: '/v1/chat/completions',
    body: ({ salt }) => withMember(body, `"cache_salt":${JSON.stringify(salt)}`),
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
    health: () => fleetHealth(fleet),
    async close() {
      closed = true
      if (ownsFleet) await fleet.close()
    },
  }
}
