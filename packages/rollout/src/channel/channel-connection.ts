import { type ChannelArrays, channelCloseCodes, type ServiceMessage, type TrainError, TrainerClientMessage } from '@aworld-train/core'
import type { WebSocket } from 'ws'
import { createFramedSocket, type FramedSocket, type SocketFrame } from '../frames/framed-socket.ts'
import type { ChannelServerLimits } from './channel-limits.ts'
import type { ChannelTally } from './channel-tally.ts'

/** A trainer client's message with its arrays. */
export type ClientFrame = SocketFrame<TrainerClientMessage>

/** The open connection of a trainer client, as an engine sees it. */
export interface EngineConnection {
  send(message: ServiceMessage, arrays?: ChannelArrays): void
}

/** One socket of a trainer client. */
export interface ChannelConnection extends EngineConnection, Omit<FramedSocket, 'send' | 'heardAt'> {
  /** Ends it with the reason why this trainer client is not served. */
  reject(error: TrainError): void
}

export interface ConnectionOptions {
  readonly socket: WebSocket
  readonly limits: ChannelServerLimits
  /** Called for each frame in order, once the call for the previous frame has resolved. */
  readonly onFrame: (frame: ClientFrame) => Promise<void> | void
  readonly onClose: () => void
  readonly tally: Pick<ChannelTally, 'bytes' | 'received' | 'sent'>
  readonly onWarning: (code: string, message: string) => void
}

export function createChannelConnection({ socket, limits, onFrame, onClose, onWarning, tally }: ConnectionOptions): ChannelConnection {
  const framed = createFramedSocket({
    socket,
    messages: TrainerClientMessage,
    peer: 'trainer',
    codes: { lost: 'CHANNEL_LOST', invalid: 'CHANNEL_INVALID' },
    limits,
    onFrame(frame) {
      tally.received(frame.message)
      return onFrame(frame)
    },
    onClose,
    onWarning,
    onBytes: tally.bytes,
  })

  function send(message: ServiceMessage, arrays?: ChannelArrays): void {
    framed.send(message, arrays)
    tally.sent(message)
  }

  return {
    ...framed,
    send,
    reject({ code, message, retryable }) {
      send({ type: 'rejected', error: { code, message, retryable } })
      framed.close(channelCloseCodes.rejected, code)
    },
  }
}
