import { type ChannelArrays, decodeChannelFrame, type ErrorCode, encodeChannelFrame, TrainError, toTrainError } from '@aworld-train/core'
import type { RawData } from 'ws'
import type { z } from 'zod'
import { type Clock, processClock } from '../clock.ts'

/** A message from the other side, with its arrays. */
export interface SocketFrame<Message> {
  readonly message: Message
  readonly arrays: ChannelArrays
}

/** What frames need of a WebSocket. */
export interface FrameSocket {
  readonly bufferedAmount: number
  send(frame: string | Uint8Array, options: { readonly binary: boolean }): void
  ping(): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message', listener: (data: RawData, isBinary: boolean) => void): unknown
  on(event: 'ping' | 'pong', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: (code: number) => void): unknown
}

export interface FramedSocketOptions<Received> {
  readonly socket: FrameSocket
  /** Schema of the messages that the other side may send. */
  readonly messages: z.ZodType<Received>
  /** Name of the other side in errors, such as `trainer`. */
  readonly peer: string
  /** Codes of warnings: `lost` when the other side is gone, `invalid` when its message cannot be read. */
  readonly codes: { readonly lost: ErrorCode; readonly invalid: ErrorCode }
  readonly limits: { readonly maxBufferedBytes: number; readonly deadMs: number }
  /** Called for each frame in order, once the call for the previous frame has resolved. */
  readonly onFrame: (frame: SocketFrame<Received>) => Promise<void> | void
  /** Called once, with the close code if the other side closed the connection. */
  readonly onClose: (code?: number) => void
  readonly onWarning: (code: string, message: string) => void
  readonly onBytes?: ((direction: 'received' | 'sent', count: number) => void) | undefined
  /** Default: the clock of this process. */
  readonly clock?: Clock | undefined
}

/** One WebSocket whose frames are messages of a schema. */
export interface FramedSocket {
  send(message: object, arrays?: ChannelArrays): void
  /** Tells the other side that its message cannot be read, and closes the connection. */
  unreadable(message: string): void
  close(code: number, reason: string): void
  /** Pings the other side, or cuts the connection if it has been silent for too long at `now`. */
  beat(now: number): void
  /** Time by the clock when the other side was last heard. */
  heardAt(): number
}

/** Close code for a message that cannot be read. */
const unreadableCode = 4001

/** How long a peer may take to answer the closing handshake. */
const closeMs = 250

/** Most problems of one message that an answer names. */
const shownProblems = 3

function toBytes(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data)
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data
}

const bytesOf = (data: RawData) => (Array.isArray(data) ? data.reduce((sum, { byteLength }) => sum + byteLength, 0) : data.byteLength)

export function createFramedSocket<Received>(options: FramedSocketOptions<Received>): FramedSocket {
  const { socket, messages, peer, codes, limits, onFrame, onClose, onWarning, onBytes, clock = processClock } = options
  let heardAt = clock.now()
  let open = true
  let queue = Promise.resolve()

  const hear = () => {
    heardAt = clock.now()
  }

  function readFrame(data: RawData, isBinary: boolean): SocketFrame<Received> {
    const { message, arrays } = decodeChannelFrame(isBinary ? toBytes(data) : toBytes(data).toString())
    const parsed = messages.safeParse(message)
    if (parsed.success) return { message: parsed.data, arrays }
    const problems = parsed.error.issues.slice(0, shownProblems).map((issue) => `${issue.path.join('.') || 'type'}: ${issue.message}`)
    const type = typeof message['type'] === 'string' ? ` "${message['type'].slice(0, 40)}"` : ''
    throw new TrainError(codes.invalid, `A message${type} of the ${peer} is not of protocol 1. ${problems.join('; ')}.`)
  }

  function close(code: number, reason: string): void {
    if (!open) return
    open = false
    socket.close(code, reason)
    clock.after(closeMs, () => socket.terminate())
    onClose()
  }

  function cut(message: string): void {
    if (!open) return
    open = false
    onWarning(codes.lost, message)
    socket.terminate()
    onClose()
  }

  function send(message: object, arrays?: ChannelArrays): void {
    if (!open) return
    const frame = encodeChannelFrame(message as Readonly<Record<string, unknown>>, arrays)
    socket.send(frame, { binary: typeof frame !== 'string' })
    onBytes?.('sent', Buffer.byteLength(frame))
    if (socket.bufferedAmount > limits.maxBufferedBytes)
      cut(`A ${peer} does not read: ${socket.bufferedAmount} bytes wait for it; its connection was cut.`)
  }

  function unreadable(message: string): void {
    send({ type: 'error', message })
    close(unreadableCode, 'The message could not be read.')
  }

  async function take(data: RawData, isBinary: boolean): Promise<void> {
    if (!open) return
    try {
      await onFrame(readFrame(data, isBinary))
    } catch (error) {
      const { code, message } = toTrainError(error, 'GATEWAY_FAILED')
      onWarning(code, message)
      unreadable(message)
    }
  }

  socket.on('message', (data: RawData, isBinary: boolean) => {
    hear()
    onBytes?.('received', bytesOf(data))
    queue = queue.then(() => take(data, isBinary))
  })
  socket.on('pong', hear)
  socket.on('ping', hear)
  // `ws` has already closed the connection: the frame was too large, or the bytes are no WebSocket.
  socket.on('error', (error: Error) => onWarning(codes.invalid, `A connection of a ${peer} broke: ${error.message}.`))
  socket.on('close', (code: number) => {
    if (!open) return
    open = false
    onClose(code)
  })

  return {
    send,
    unreadable,
    close,
    beat(now) {
      if (now - heardAt > limits.deadMs) cut(`A ${peer} has said nothing for ${limits.deadMs} ms; its connection was cut.`)
      else if (open) socket.ping()
    },
    heardAt: () => heardAt,
  }
}
