import type { ChatEngine, EngineHealth } from '@aworld-train/core'
import { type LogprobKind, type Sampling, TrainError } from '@aworld-train/protocol'
import { fleetHealth } from '../fleet/fleet-health.ts'
import type { Fleet } from '../fleet/fleet-types.ts'

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

/** The pieces of a JSON object with a member more at its end; nothing is copied. GATEWAY_BAD_REQUEST where it ends with no brace. */
export function withMember(pieces: readonly Uint8Array[], member: string): readonly Uint8Array[] {
  const kept = [...pieces]
  /** The last byte that is no white space, and everything behind it taken off; 0 where there is none. */
  const lastByte = (): number => {
    for (let piece = kept.at(-1); piece !== undefined; piece = kept.at(-1)) {
      let end = piece.length
      while (end > 0 && piece[end - 1]! <= 0x20) end--
      if (end > 0) {
        kept[kept.length - 1] = piece.subarray(0, end)
        return piece[end - 1]!
      }
      kept.pop()
    }
    return 0
  }
  if (lastByte() !== closing)
    throw new TrainError('GATEWAY_BAD_REQUEST', 'The body of a chat call ends without a brace; send one JSON object.')
  kept[kept.length - 1] = kept.at(-1)!.subarray(0, -1)
  const comma = lastByte() === opening ? '' : ','
  return [...kept, Buffer.from(`${comma}${member}}`)]
}

export function createChatEngine({ fleet, ownsFleet, model, policy, logprobs, reader, splice }: ChatEngineParts): RemoteChatEngine {
  let closed = false
  return {
    name: fleet.kind.name,
    model,
    fleet,
    logprobs,
    reader,
    splice,
    async send({ body, stream, affinity }, handler, signal) {
      if (closed) throw new TrainError('POLICY_UNAVAILABLE', `Engine "${model.name}" is closed; create another.`)
      signal.throwIfAborted()
      return fleet.send(
        {
          path: '/v1/chat/completions',
          body: ({ salt }) => withMember(body, `"cache_salt":${JSON.stringify(salt)}`),
          stream,
          affinity,
          policy,
        },
        handler,
        signal,
      )
    },
    weightVersion: () => fleet.weightVersion(policy),
    health: () => fleetHealth(fleet),
    async close() {
      closed = true
      if (ownsFleet) await fleet.close()
    },
  }
}
