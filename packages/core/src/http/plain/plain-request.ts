import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { type BodyEnd, type BodyMemory, incompleteBody, tooLarge } from '../body.ts'
import type { HttpRequest } from '../message.ts'
import type { PlainHead } from './read-plain-head.ts'

/** Bytes of a body that are kept while nobody asks for it. */
const maxEarlyBytes = 64 * 1024

/** A request whose body has a length, and comes in pieces. */
export class PlainRequest implements HttpRequest {
  readonly method = 'POST'
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
  readonly #length: number
  #came = 0
  #kept = 0
  #first: Buffer | null = null
  #more: Buffer[] | null = null
  #whole: Buffer | null = null
  #memory: BodyMemory | undefined
  #ended: BodyEnd | null = null
  #isOver = false
  #copied = false
  /** When nobody wanted the rest, by `performance.now()`. */
  #discardedAt: number | null = null

  constructor(socket: Socket, { url, headers, length }: PlainHead) {
    this.socket = socket
    this.url = url
    this.headers = headers
    this.#length = length
  }

  get complete(): boolean {
    return this.#came === this.#length
  }

  get discardedAt(): number | null {
    return this.#discardedAt
  }

  /** Nothing of what was pushed last is in use: it was copied, or not wanted. */
  get copied(): boolean {
    return this.#copied
  }

  /** As `collectBody`; once. */
  collect(maxBytes: number, memory: BodyMemory | undefined, ended: BodyEnd): void {
    if (this.#length > maxBytes) {
      this.discard()
      ended(null, tooLarge(maxBytes))
      return
    }
    if (this.#isOver) {
      ended(null, incompleteBody())
      return
    }
    this.#ended = ended
    this.#memory = memory
    if (this.complete) this.#end()
    else if (this.socket.isPaused()) this.socket.resume()
  }

  /** What comes of the body is kept no more. */
  discard(): void {
    this.#discardedAt ??= performance.now()
    this.#first = this.#more = this.#whole = null
    if (this.socket.isPaused()) this.socket.resume()
  }

  /** Takes what belongs to the body, and says how much that was. */
  push(bytes: Buffer): number {
    const taken = Math.min(bytes.length, this.#length - this.#came)
    if (taken === 0) return 0
    this.#came += taken
    this.#copied = this.#discardedAt !== null
    if (this.#copied) return taken
    this.#keep(taken === bytes.length ? bytes : bytes.subarray(0, taken))
    if (!this.#ended) {
      if (!this.complete && this.#kept > maxEarlyBytes) this.socket.pause()
    } else if (this.complete) this.#end()
    return taken
  }

  /** The connection is gone. */
  close(): void {
    if (this.complete || this.#isOver) return
    this.#isOver = true
    const ended = this.#ended
    this.#ended = null
    ended?.(null, incompleteBody())
  }

  #keep(piece: Buffer): void {
    const whole = this.#whole ?? (this.#kept === 0 && piece.length < this.#length ? (this.#memory?.(this.#length) ?? null) : null)
    if (whole) {
      this.#whole = whole
      whole.set(piece, this.#kept)
      this.#copied = true
    } else if (!this.#first) this.#first = piece
    else if (this.#more) this.#more.push(piece)
    else this.#more = [this.#first, piece]
    this.#kept += piece.length
  }

  #end(): void {
    const ended = this.#ended
    const length = this.#length
    const body = this.#whole?.subarray(0, length) ?? (this.#more ? Buffer.concat(this.#more, length) : (this.#first ?? Buffer.alloc(0)))
    this.#ended = this.#first = this.#more = this.#whole = null
    ended?.(body, null)
  }
}
