import { type Framing, notHttp, ResponseError, type ResponseHead, readHead } from './response-head.ts'

export interface ResponseSink {
  /** Once for each answer; those that only announce one (1xx) are passed over. */
  onHead(head: ResponseHead): void
  /** A piece of the body, in the memory of what was pushed. */
  onBody(piece: Buffer): void
  onEnd(): void
}

const maxHeadBytes = 64 * 1024
const maxSizeLine = 4096
const [cr, lf, semicolon, space, tab] = [13, 10, 59, 32, 9]
const headEnd = Buffer.from('\r\n\r\n')

/** Where the parser stands; the body is over where it stands before a head. */
const at = { head: 0, length: 1, close: 2, size: 3, data: 4, dataEnd: 5, trailer: 6 } as const
type Place = (typeof at)[keyof typeof at]

/**
 * Reads the answers of a connection, however their bytes are cut (RFC 9112, sections 4, 6 and 7). Throws ResponseError where
 * they are malformed; what has a length in two ways is, too, since who stands between may have taken the other.
 */
export class ResponseParser {
  readonly #sink: ResponseSink
  #place: Place = at.head
  #pending: Buffer | null = null
  /** Bytes left of the body, or of the chunk. */
  #left = 0
  #size = 0
  #sizeBytes = 0
  #inExtension = false
  #trailerBytes = 0
  #lineBytes = 0

  constructor(sink: ResponseSink) {
    this.#sink = sink
  }

  /** Whether an answer has begun that has not ended. */
  get isOpen(): boolean {
    return this.#place !== at.head || this.#pending !== null
  }

  push(bytes: Buffer): void {
    let from = 0
    while (from < bytes.length) {
      switch (this.#place) {
        case at.head:
          from = this.#readHead(bytes, from)
          break
        case at.length:
        case at.data:
          from = this.#readPiece(bytes, from)
          break
        case at.close:
          this.#sink.onBody(from === 0 ? bytes : bytes.subarray(from))
          return
        case at.size:
          from = this.#readSize(bytes, from)
          break
        case at.dataEnd:
          from = this.#readDataEnd(bytes, from)
          break
        default:
          from = this.#readTrailer(bytes, from)
      }
    }
  }

  /** The connection has ended. An answer whose end is that of the connection is complete then, any other that began is cut. */
  finish(): void {
    if (this.#place !== at.close) return
    this.#place = at.head
    this.#sink.onEnd()
  }

  #end(): void {
    this.#place = at.head
    this.#sink.onEnd()
  }

  #readHead(given: Buffer, start: number): number {
    const pending = this.#pending
    const bytes = pending ? Buffer.concat([pending, given.subarray(start)]) : given
    const from = pending ? 0 : start
    const end = bytes.indexOf(headEnd, pending ? Math.max(0, pending.length - 3) : from)
    if ((end < 0 ? bytes.length : end) - from > maxHeadBytes)
      throw new ResponseError(`the head of its answer is above ${maxHeadBytes} bytes`)
    if (end < 0) {
      // Bytes that cannot begin an answer are said to be wrong now: no more may come.
      if (!beginsAnswer(bytes, from)) throw notHttp()
      this.#pending = pending ? bytes : Buffer.from(bytes.subarray(from))
      return given.length
    }
    this.#pending = null
    const { head, framing } = readHead(bytes.toString('latin1', from, end))
    const next = end + 4 - (pending ? pending.length - start : 0)
    if (head.status >= 200) this.#open(head, framing)
    else if (head.status === 101) throw new ResponseError('it changes the protocol, which nobody asked for')
    return next
  }

  #open(head: ResponseHead, framing: Framing): void {
    this.#sink.onHead(head)
    if (framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0)) this.#end()
    else if (framing.kind === 'length') {
      this.#left = framing.length
      this.#place = at.length
    } else if (framing.kind === 'close') this.#place = at.close
    else this.#beginSize()
  }

  #beginSize(): void {
    this.#place = at.size
    this.#lineBytes = 0
    this.#size = 0
    this.#sizeBytes = 0
    this.#inExtension = false
  }

  #readPiece(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left)
    this.#left -= to - from
    this.#sink.onBody(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
    if (this.#left === 0) {
      if (this.#place === at.length) this.#end()
      else {
        this.#place = at.dataEnd
        this.#lineBytes = 0
      }
    }
    return to
  }

  /** `1f;name=value CR LF`: hexadecimal digits, then what is passed over. */
  #readSize(bytes: Buffer, from: number): number {
    for (let index = from; index < bytes.length; index++) {
      const byte = bytes[index]!
      if (++this.#sizeBytes > maxSizeLine) throw new ResponseError('the size of a chunk of its answer has no end')
      if (byte === lf) {
        if (this.#lineBytes !== cr || this.#sizeBytes < 3) throw badChunk()
        this.#lineBytes = 0
        this.#endSize()
        return index + 1
      }
      if (this.#lineBytes === cr) throw badChunk()
      if (byte === cr) this.#lineBytes = cr
      else if (byte === semicolon || byte === space || byte === tab) {
        if (this.#sizeBytes === 1) throw badChunk()
        this.#inExtension = true
      } else if (!this.#inExtension) {
        const digit = hexDigit(byte)
        if (digit < 0 || this.#size > 2 ** 48) throw badChunk()
        this.#size = this.#size * 16 + digit
      }
    }
    return bytes.length
  }

  #endSize(): void {
    if (this.#size === 0) {
      this.#place = at.trailer
      this.#trailerBytes = 0
    } else {
      this.#left = this.#size
      this.#place = at.data
    }
  }

  #readDataEnd(bytes: Buffer, from: number): number {
    const expected = this.#lineBytes === 0 ? cr : lf
    if (bytes[from] !== expected) throw badChunk()
    if (expected === cr) this.#lineBytes = 1
    else this.#beginSize()
    return from + 1
  }

  /** Fields behind the last chunk, which are passed over, and the empty line that ends them. */
  #readTrailer(bytes: Buffer, from: number): number {
    for (let index = from; index < bytes.length; index++) {
      if (++this.#trailerBytes > maxHeadBytes) throw new ResponseError('what stands behind its answer has no end')
      const byte = bytes[index]!
      if (byte === cr) continue
      if (byte !== lf) {
        this.#lineBytes++
        continue
      }
      const isEmpty = this.#lineBytes === 0
      this.#lineBytes = 0
      if (!isEmpty) continue
      this.#end()
      return index + 1
    }
    return bytes.length
  }
}

const badChunk = () => new ResponseError('a chunk of its answer is malformed')

function beginsAnswer(bytes: Buffer, from: number): boolean {
  const start = bytes.toString('latin1', from, from + 7)
  return 'HTTP/1.'.startsWith(start)
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
