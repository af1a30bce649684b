import {
  type ChannelArrays,
  type ChannelFrame,
  channelCloseCodes,
  DriverMessage,
  decodeChannelFrame,
  encodeChannelFrame,
  type ServiceMessage,
  TrainError,
  toTrainError,
} from '@aworld-train/protocol'
import type { RawData, WebSocket } from 'ws'
import type { ChannelTally } from './channel-tally.ts'
import type { ChannelServerLimits, EngineConnection } from './channel-types.ts'

/** A driver's message with its arrays. */
export interface DriverFrame {
  readonly message: DriverMessage
  readonly arrays: ChannelArrays
}

/** One socket of a driver. */
export interface ChannelConnection extends EngineConnection {
  /** Ends it with the reason why this driver is not served. */
  reject(error: TrainError): void
  /** Ends it because of something that cannot be read. */
  unreadable(message: string): void
  close(code: number, reason: string): void
  /** Asks whether the other side is alive, or ends what has been silent for too long at `now`. */
  beat(now: number): void
}

export interface ConnectionOptions {
  readonly socket: WebSocket
  readonly limits: ChannelServerLimits
  /** Called for one frame after another, each when the one before was dealt with. */
  readonly onFrame: (frame: DriverFrame) => Promise<void> | void
  readonly onClose: () => void
  readonly tally: Pick<ChannelTally, 'bytes' | 'received' | 'sent'>
  readonly onWarning: (code: string, message: string) => void
}

/** How long a peer may take to answer the closing handshake. */
const closeMs = 250

/** How many problems of a message an answer names. */
const shownProblems = 3

function toBytes(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data)
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data
}

const bytesOf = (data: RawData) => (Array.isArray(data) ? data.reduce((sum, { byteLength }) => sum + byteLength, 0) : data.byteLength)

function readFrame(data: RawData, isBinary: boolean): DriverFrame {
  const { message, arrays }: ChannelFrame = decodeChannelFrame(isBinary ? toBytes(data) : toBytes(data).toString())
  const parsed = DriverMessage.safeParse(message)
  if (parsed.success) return { message: parsed.data, arrays }
  const problems = parsed.error.issues.slice(0, shownProblems).map((issue) => `${issue.path.join('.') || 'type'}: ${issue.message}`)
  const type = typeof message['type'] === 'string' ? ` "${message['type'].slice(0, 40)}"` : ''
  throw new TrainError('CHANNEL_INVALID', `A message${type} of the trainer is not of protocol 1. ${problems.join('; ')}.`)
}

const brief = ({ code, message, retryable }: TrainError) => ({ code, message, retryable })

export function createChannelConnection({ socket, limits, onFrame, onClose, onWarning, tally }: ConnectionOptions): ChannelConnection {
  let heardAt = performance.now()
  let open = true
  let queue = Promise.resolve()

  const hear = () => {
    heardAt = performance.now()
  }

  function close(code: number, reason: string): void {
    if (!open) return
    open = false
    socket.close(code, reason)
    setTimeout(() => socket.terminate(), closeMs)
    onClose()
  }

  function cut(code: string, message: string): void {
    if (!open) return
    open = false
    onWarning(code, message)
    socket.terminate()
    onClose()
  }

  function unreadable(message: string): void {
    connection.send({ type: 'error', message })
    close(channelCloseCodes.unreadable, 'The message could not be read.')
  }

  function refuse(error: unknown): void {
    const { code, message } = toTrainError(error, 'GATEWAY_FAILED')
    onWarning(code, message)
    unreadable(message)
  }

  async function take(data: RawData, isBinary: boolean): Promise<void> {
    if (!open) return
    try {
      const frame = readFrame(data, isBinary)
      tally.received(frame.message)
      await onFrame(frame)
    } catch (error) {
      refuse(error)
    }
  }

  const connection: ChannelConnection = {
    send(message: ServiceMessage, arrays?: ChannelArrays) {
      if (!open) return
      const frame = encodeChannelFrame(message, arrays)
      socket.send(frame, { binary: typeof frame !== 'string' })
      tally.bytes('sent', Buffer.byteLength(frame))
      tally.sent(message)
      if (socket.bufferedAmount > limits.maxBufferedBytes) {
        cut('CHANNEL_LOST', `A trainer does not read: ${socket.bufferedAmount} bytes wait for it; its connection was cut.`)
      }
    },
    reject(error) {
      connection.send({ type: 'rejected', error: brief(error) })
      close(channelCloseCodes.rejected, error.code)
    },
    unreadable,
    close,
    beat(now) {
      if (now - heardAt > limits.deadMs) cut('CHANNEL_LOST', `A trainer has said nothing for ${limits.deadMs} ms; its connection was cut.`)
      else if (open) socket.ping()
    },
  }

  socket.on('message', (data: RawData, isBinary: boolean) => {
    hear()
    tally.bytes('received', bytesOf(data))
    queue = queue.then(() => take(data, isBinary))
  })
  socket.on('pong', hear)
  socket.on('ping', hear)
  // Too large a frame, or bytes that are no WebSocket: `ws` has closed it already.
  socket.on('error', (error: Error) => onWarning('CHANNEL_INVALID', `A connection of a trainer broke: ${error.message}.`))
  socket.on('close', () => {
    if (!open) return
    open = false
    onClose()
  })
  return connection
}
