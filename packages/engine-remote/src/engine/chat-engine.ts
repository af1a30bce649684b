import type { ChatEngine } from '@aworld-train/core'
import { type LogprobKind, type Sampling, TrainError } from '@aworld-train/protocol'
import type { Fleet } from '../fleet/fleet-types.ts'

/** A chat engine over servers; whoever shares its fleet with another engine closes the fleet. */
export interface RemoteChatEngine extends ChatEngine {
  readonly fleet: Fleet
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

/** The pieces of a JSON object as one buffer, with a member more at its end. GATEWAY_BAD_REQUEST where it ends with no brace. */
export function withMember(pieces: readonly Uint8Array[], member: string): Buffer {
  let length = 0
  for (const piece of pieces) length += piece.length
  const buffer = Buffer.allocUnsafe(length + member.length + 2)
  let at = 0
  for (const piece of pieces) {
    buffer.set(piece, at)
    at += piece.length
  }
  const skipSpace = () => {
    while (at > 0 && buffer[at - 1]! <= 0x20) at--
  }
  skipSpace()
  if (at === 0 || buffer[at - 1] !== closing)
    throw new TrainError('GATEWAY_BAD_REQUEST', 'The body of a chat call ends without a brace; send one JSON object.')
  at--
  skipSpace()
  if (buffer[at - 1] !== opening) buffer[at++] = 0x2c
  at += buffer.write(member, at, 'latin1')
  buffer[at++] = closing
  return buffer.subarray(0, at)
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
          body: ({ salt }) => withMember(body, `"cache_salt":"${salt}"`),
          stream,
          affinity,
          policy,
        },
        handler,
        signal,
      )
    },
    weightVersion: () => fleet.weightVersion(policy),
    async close() {
      closed = true
      if (ownsFleet) await fleet.close()
    },
  }
}
