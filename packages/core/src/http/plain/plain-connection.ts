import type { Socket } from 'node:net'
import { lingerMs } from '../body.ts'
import { freeMemory } from '../free-memory.ts'
import type { HttpRequest, HttpResponse } from '../message.ts'
import { PlainRequest } from './plain-request.ts'
import { PlainResponse } from './plain-response.ts'
import { readPlainHead } from './read-plain-head.ts'

/** Who serves what connections bring. */
export interface PlainServer {
  readonly maxHeaderBytes: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  handle(request: HttpRequest, response: HttpResponse): void
  /** Another parser reads the connection from here on: `bytes`, and what comes after them. */
  handOver(connection: PlainConnection, socket: Socket, bytes: Buffer): void
  /** Ends a connection whose request did not come in time, or only in part. */
  refuse(socket: Socket, why: 'timeout' | 'incomplete', mayAnswer: boolean): void
  /** Whether connections are kept behind their answers. */
  isOpen(): boolean
  onClose(connection: PlainConnection): void
}

/** What comes while an answer is under way is kept up to this; then the client has to wait. */
const maxPendingBytes = 64 * 1024
/** A client may send a request just when its time is over. */
const keepAliveGraceMs = 1_000

/** A connection of a client that writes plain requests, one after another; at any other it is handed over. */
export class PlainConnection {
  readonly socket: Socket
  readonly #server: PlainServer
  #request: PlainRequest | null = null
  #response: PlainResponse | null = null
  #pending: Buffer[] = []
  #pendingBytes = 0
  #served = 0
  #isLast = false
  /** When it was free, or its request began, by `performance.now()`. */
  #since = performance.now()
  #isRefused = false
  readonly #onData = (bytes: Buffer) => this.#read(bytes)
  readonly #onEnd = () => this.#clientEnded()
  readonly #onClose = () => this.#closed()
  readonly #onDrain = () => this.#response?.drained()

  constructor(socket: Socket, server: PlainServer) {
    this.socket = socket
    this.#server = server
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('close', this.#onClose)
    socket.on('drain', this.#onDrain)
    socket.on('error', ignore)
  }

  /** No request of it is under way. */
  get isIdle(): boolean {
    return this.#request === null
  }

  get keepAliveSeconds(): number {
    return this.#isLast || !this.#server.isOpen() ? 0 : Math.max(1, Math.floor(this.#server.keepAliveTimeoutMs / 1_000))
  }

  /** Ends it where it has waited too long; for now and then. */
  checkTime(now: number): void {
    if (this.#isRefused) return
    const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = this.#server
    const request = this.#request
    if (request) {
      if (request.complete) return
      if (request.discardedAt !== null) {
        if (now - request.discardedAt > lingerMs) this.socket.destroy()
      } else if (now - this.#since > requestTimeoutMs) this.#refuse('timeout')
    } else if (this.#served === 0) {
      if (now - this.#since > headersTimeoutMs) this.#refuse('timeout')
    } else if (now - this.#since > keepAliveTimeoutMs + keepAliveGraceMs) this.socket.destroy()
  }

  /** Its answer was handed to the system. */
  onFinished(): void {
    if (this.#request?.complete) this.#free()
    else this.#request?.discard()
  }

  #refuse(why: 'timeout' | 'incomplete'): void {
    this.#isRefused = true
    this.#server.refuse(this.socket, why, !this.#response?.headersSent)
  }

  #read(bytes: Buffer): void {
    // What still comes of a request that was refused is nobody's.
    if (this.#isRefused) return
    const request = this.#request
    if (!request) {
      this.#begin(bytes)
      return
    }
    const taken = request.push(bytes)
    if (taken < bytes.length) this.#keep(taken === 0 ? bytes : bytes.subarray(taken))
    else if (request.copied) freeMemory(bytes)
    if (this.#response?.writableFinished && request.complete) this.#free()
  }

  #keep(bytes: Buffer): void {
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes > maxPendingBytes) this.socket.pause()
  }

  #begin(bytes: Buffer): void {
    // Nothing can be answered any more.
    if (this.socket.writableEnded || this.socket.destroyed) return
    const head = readPlainHead(bytes, this.#server.maxHeaderBytes)
    // Requests that come in one piece may be served at the same time, which is not for here.
    if (!head || bytes.length > head.bodyFrom + head.length) {
      this.#handOver(bytes)
      return
    }
    this.#isLast = head.last
    this.#since = performance.now()
    const request = new PlainRequest(this.socket, head)
    const response = new PlainResponse(this)
    this.#request = request
    this.#response = response
    this.#server.handle(request, response)
    if (bytes.length === head.bodyFrom) return
    request.push(bytes.subarray(head.bodyFrom))
    if (request.copied) freeMemory(bytes)
  }

  #handOver(bytes: Buffer): void {
    const { socket } = this
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('close', this.#onClose)
    socket.off('drain', this.#onDrain)
    socket.off('error', ignore)
    this.#server.handOver(this, socket, bytes)
  }

  /** Request and answer are over. */
  #free(): void {
    this.#request = null
    this.#response = null
    this.#served++
    this.#since = performance.now()
    if (this.#isLast || !this.#server.isOpen()) {
      this.socket.destroySoon()
      return
    }
    if (this.#pendingBytes === 0) return
    const bytes = this.#pending.length === 1 ? this.#pending[0]! : Buffer.concat(this.#pending)
    this.#pending = []
    this.#pendingBytes = 0
    if (this.socket.isPaused()) this.socket.resume()
    this.#begin(bytes)
  }

  /** The client sends nothing more, and does not wait for what it has not got: that is how one leaves. */
  #clientEnded(): void {
    const request = this.#request
    if (this.#isRefused) this.socket.destroySoon()
    else if (!request) this.socket.end()
    else if (!request.complete && request.discardedAt === null) this.#refuse('incomplete')
    else if (this.#response?.writableEnded) this.socket.end()
    else this.socket.destroy()
  }

  #closed(): void {
    this.#request?.close()
    this.#response?.close()
    this.#server.onClose(this)
  }
}

const ignore = () => {}
