import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpResponse } from '../message.ts'

/** What a connection does for the answer under way. */
export interface ResponseOwner {
  readonly socket: Socket
  /** Seconds that an idle connection is kept; 0 where it ends behind this answer. */
  readonly keepAliveSeconds: number
  /** The answer was handed to the system. */
  onFinished(): void
}

/** Answers up to this leave in one piece with their head: a copy costs less than a vector of writes then. */
const copyUpTo = 16 * 1024
/** What a field may not hold, lest it end there. */
const notInValue = /[^\t\x20-\x7e\x80-\xff]/
const chunkEnd = Buffer.from('\r\n')
const lastChunk = Buffer.from('0\r\n\r\n')

let date = ''
let dateAt = Number.NEGATIVE_INFINITY

/** The time as a field has it, at most a second old. */
function dateNow(): string {
  const now = performance.now()
  if (now - dateAt >= 1_000) {
    dateAt = now
    date = new Date().toUTCString()
  }
  return date
}

/** The answer to a request; what is written in one turn of the event loop leaves in one piece. */
export class PlainResponse implements HttpResponse {
  readonly #owner: ResponseOwner
  headersSent = false
  writableEnded = false
  writableFinished = false
  destroyed = false
  #chunked = false
  #willFlush = false
  #out: (string | Uint8Array)[] = []
  #bytes = 0
  #onClose: (() => void)[] = []
  #onDrain: (() => void)[] = []

  constructor(owner: ResponseOwner) {
    this.#owner = owner
  }

  /** Throws TypeError where a value would end its line. */
  writeHead(status: number, headers: OutgoingHttpHeaders = {}): void {
    if (this.headersSent) throw new TypeError('The head of this answer has been written.')
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
    let hasLength = false
    for (const name in headers) {
      if (headers[name] === undefined) continue
      const value = String(headers[name])
      if (notInValue.test(value)) throw new TypeError(`The header ${name} has a character that no header may have.`)
      if (name === 'content-length') hasLength = true
      head += `${name}: ${value}\r\n`
    }
    const { keepAliveSeconds } = this.#owner
    head += `Date: ${dateNow()}\r\n`
    head += keepAliveSeconds > 0 ? `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n` : 'Connection: close\r\n'
    this.#chunked = !hasLength
    if (this.#chunked) head += 'Transfer-Encoding: chunked\r\n'
    this.headersSent = true
    this.#push(`${head}\r\n`, head.length + 2)
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.writableEnded || this.destroyed) return false
    if (!this.headersSent) this.writeHead(200)
    this.#pushBody(chunk)
    this.#flushSoon()
    return !this.#owner.socket.writableNeedDrain
  }

  end(chunk?: string | Uint8Array): void {
    if (this.writableEnded || this.destroyed) return
    if (!this.headersSent) this.writeHead(200, { 'content-length': chunk === undefined ? 0 : Buffer.byteLength(chunk) })
    if (chunk !== undefined) this.#pushBody(chunk)
    if (this.#chunked) this.#push(lastChunk, lastChunk.length)
    this.writableEnded = true
    this.#flush()
  }

  /** What is written in one turn leaves in one piece as it is. */
  cork(): void {}

  destroy(): void {
    // The connection may serve another request behind this one.
    if (!this.destroyed) this.#owner.socket.destroy()
  }

  once(event: 'close' | 'drain', listener: () => void): void {
    if (event === 'drain') this.#onDrain.push(listener)
    else if (!this.destroyed) this.#onClose.push(listener)
  }

  /** The connection takes more. */
  drained(): void {
    const listeners = this.#onDrain
    if (listeners.length === 0) return
    this.#onDrain = []
    for (const listener of listeners) listener()
  }

  /** Nothing more will be sent. */
  close(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.#out = []
    const listeners = this.#onClose
    this.#onClose = []
    for (const listener of listeners) listener()
  }

  #pushBody(chunk: string | Uint8Array): void {
    const length = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length
    // A chunk without bytes would be the last.
    if (length === 0) return
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : chunk
    if (!this.#chunked) {
      this.#push(bytes, length)
      return
    }
    const size = `${length.toString(16)}\r\n`
    this.#push(size, size.length)
    this.#push(bytes, length)
    this.#push(chunkEnd, chunkEnd.length)
  }

  /** `piece` has that many bytes; text is Latin-1. */
  #push(piece: string | Uint8Array, bytes: number): void {
    this.#out.push(piece)
    this.#bytes += bytes
  }

  #flushSoon(): void {
    if (this.#willFlush) return
    this.#willFlush = true
    process.nextTick(flushLater, this)
  }

  /** For `process.nextTick` alone. */
  flushNow(): void {
    this.#willFlush = false
    if (!this.writableEnded && !this.destroyed) this.#flush()
  }

  #flush(): void {
    const out = this.#out
    const bytes = this.#bytes
    this.#out = []
    this.#bytes = 0
    const { socket } = this.#owner
    const sent = this.writableEnded ? (error?: Error | null) => this.#finish(error) : undefined
    if (bytes <= copyUpTo) {
      socket.write(join(out, bytes), sent)
      return
    }
    socket.cork()
    const last = out.length - 1
    for (let index = 0; index < last; index++) writePiece(socket, out[index]!)
    writePiece(socket, out[last]!, sent)
    socket.uncork()
  }

  #finish(error: Error | null | undefined): void {
    // The connection closes of it, and says so; a write that a closed socket gave up is no error.
    if (error || this.destroyed || this.#owner.socket.destroyed) return
    this.writableFinished = true
    this.close()
    this.#owner.onFinished()
  }
}

const flushLater = (response: PlainResponse) => response.flushNow()

function writePiece(socket: Socket, piece: string | Uint8Array, sent?: (error?: Error | null) => void): void {
  if (typeof piece === 'string') socket.write(piece, 'latin1', sent)
  else socket.write(piece, sent)
}

function join(pieces: readonly (string | Uint8Array)[], length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const piece of pieces) {
    if (typeof piece === 'string') at += bytes.write(piece, at, 'latin1')
    else {
      bytes.set(piece, at)
      at += piece.length
    }
  }
  return bytes
}
