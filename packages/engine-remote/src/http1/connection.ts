import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { ResponseError, type ResponseHead } from './response-head.ts'
import { ResponseParser } from './response-parser.ts'

/** A request as it goes out. */
export interface WrittenRequest {
  readonly head: string
  readonly body: readonly Uint8Array[]
  /** Bytes of the body. */
  readonly length: number
}

/** Who hears what comes of a request. Exactly one of `onEnd` and `onError` is called, unless it is aborted. */
export interface CallHandler {
  /** A connection is there, and the request goes out. */
  onStart(): void
  onHead(head: ResponseHead): void
  /** `false` asks the server to wait until the connection is resumed. */
  onData(piece: Buffer): boolean
  onEnd(): void
  /** `reused` where the connection had served another request before, and no byte of an answer to this one came. */
  onError(error: Error, reused: boolean): void
}

export interface ConnectionOptions {
  readonly origin: URL
  readonly connectTimeoutMs: number
  /** What reads go into, of all connections of a pool: what is needed of it is copied out before the next. */
  readonly readInto: Buffer
  /** A copy of a piece. */
  readonly keep: (piece: Buffer) => Buffer
}

/** Who hears what a connection does beyond its calls. */
export interface ConnectionOwner {
  /** A call ended, and the connection is free for another. */
  onFree(connection: Connection, keepAliveSeconds: number | null): void
  /** It is gone. `byServer` where the server closed it without having said so. */
  onClose(connection: Connection, byServer: boolean): void
}

/** Bodies up to this go out in one piece with their head: a copy costs less than a vector of writes then. */
const copyUpTo = 16 * 1024

/** A connection to a server, which serves one call after another. */
export class Connection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #parser: ResponseParser
  #call: CallHandler | null
  /** What goes out once there is a connection. */
  #request: WrittenRequest | null
  #head: ResponseHead | null = null
  #connected = false
  #served = 0
  #isHeard = false
  #error: Error | null = null
  /** Ended by us, or by a server that had said it would. */
  #expected = false
  /** When it was last free, by `performance.now()`, and how long it may stay so. */
  freeSince = 0
  freeForMs = 0

  constructor(
    request: WrittenRequest,
    call: CallHandler,
    { origin, connectTimeoutMs, readInto, keep }: ConnectionOptions,
    owner: ConnectionOwner,
  ) {
    this.#request = request
    this.#call = call
    this.#owner = owner
    const isSecure = origin.protocol === 'https:'
    this.#parser = new ResponseParser({
      onHead: (head) => this.#onHead(head),
      onBody: (piece) => {
        // What TLS gives is nobody else's.
        if (this.#call && !this.#call.onData(isSecure ? piece : keep(piece))) this.#socket.pause()
      },
      onEnd: () => this.#onEnd(),
    })
    const host = origin.hostname.replace(/^\[|\]$/g, '')
    const port = Number(origin.port || (isSecure ? 443 : 80))
    const socket = isSecure
      ? connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ['http/1.1'] })
      : connectTcp({
          host,
          port,
          onread: {
            buffer: readInto,
            callback: (length, bytes) => {
              this.#read((bytes as Buffer).subarray(0, length))
              return !this.#socket.isPaused()
            },
          },
        })
    this.#socket = socket
    socket.setNoDelay(true)
    if (isSecure) socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.setTimeout(connectTimeoutMs, () => socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`)))
    socket.once(isSecure ? 'secureConnect' : 'connect', () => this.#onConnect())
    socket.on('end', () => this.#onServerEnd())
    socket.on('error', (error) => {
      this.#error ??= error
    })
    socket.on('close', () => this.#onClose())
  }

  /** Whether it may still be there: a server that just left is heard of later. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Sends another request; only while it is free. */
  serve(request: WrittenRequest, call: CallHandler): void {
    this.#call = call
    this.#socket.ref()
    this.#send(request, call)
  }

  /** Its call is heard no more. */
  abort(): void {
    this.#call = null
    this.close()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** A call that it serves ends with `error`. */
  close(error?: Error): void {
    this.#expected = true
    if (error) this.#error ??= error
    this.#socket.destroy()
  }

  free(): void {
    this.#socket.unref()
  }

  #onConnect(): void {
    this.#connected = true
    this.#socket.setTimeout(0)
    const request = this.#request
    this.#request = null
    if (this.#call && request) this.#send(request, this.#call)
  }

  #send({ head, body, length }: WrittenRequest, call: CallHandler): void {
    this.#isHeard = false
    call.onStart()
    if (this.#call !== call) return
    const socket = this.#socket
    if (length <= copyUpTo) {
      const bytes = Buffer.allocUnsafe(head.length + length)
      let at = bytes.write(head, 0, 'latin1')
      for (const piece of body) {
        bytes.set(piece, at)
        at += piece.length
      }
      socket.write(bytes)
      return
    }
    socket.cork()
    socket.write(head, 'latin1')
    for (const piece of body) socket.write(piece)
    socket.uncork()
  }

  #read(bytes: Buffer): void {
    this.#isHeard = true
    try {
      // What nobody asked for would be taken for the answer to the next request.
      if (!this.#call) throw unasked()
      this.#parser.push(bytes)
      if (!this.#call && this.#parser.isOpen) throw unasked()
    } catch (error) {
      this.close(error as Error)
    }
  }

  #onHead(head: ResponseHead): void {
    if (!this.#call) throw unasked()
    this.#head = head
    this.#call.onHead(head)
  }

  #onEnd(): void {
    const call = this.#call
    const head = this.#head
    this.#call = null
    this.#head = null
    this.#served++
    if (this.#socket.isPaused()) this.#socket.resume()
    const isFree = head?.keepAlive === true && this.#socket.writableLength === 0 && !this.#socket.destroyed
    if (!isFree) this.close()
    call?.onEnd()
    if (isFree) this.#owner.onFree(this, head.keepAliveSeconds)
  }

  #onServerEnd(): void {
    this.#parser.finish()
    this.#socket.destroy()
  }

  #onClose(): void {
    const call = this.#call
    this.#call = null
    this.#owner.onClose(this, this.#connected && !this.#expected)
    call?.onError(describe(this.#error), this.#served > 0 && !this.#isHeard)
  }
}

const unasked = () => new ResponseError('it answered what was not asked')

/** Where a name has several addresses, and none answers, the error of them all has no text of its own. */
function describe(error: Error | null): Error {
  if (!error) return new Error('other side closed')
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : []
  return error.message === '' && first ? first : error
}
