import type { IncomingMessage, ServerResponse } from 'node:http'

/** Why a body could not be had. */
export class BodyError extends Error {
  readonly reason: 'too-large' | 'incomplete'

  constructor(reason: 'too-large' | 'incomplete', message: string) {
    super(message)
    this.name = 'BodyError'
    this.reason = reason
  }
}

/** How long what is left of a refused body is discarded, so that its client gets to read the answer. */
const lingerMs = 5_000

/** Throws away what still comes of a request that is answered already; after five seconds its connection ends. */
export function discardBody(request: IncomingMessage): void {
  const linger = setTimeout(() => request.destroy(), lingerMs)
  request.once('end', () => clearTimeout(linger))
  request.once('close', () => clearTimeout(linger))
  request.resume()
}

/** Memory of at least `length` bytes for a body, `null` where it is to be made. */
export type BodyMemory = (length: number) => Buffer | null

/** Hears the whole body, or why it could not be had. */
export type BodyEnd = (body: Buffer | null, error: BodyError | null) => void

/**
 * The whole body of a request, once. One above `maxBytes` ends with an error at once; what still comes is discarded for
 * five seconds and never kept. Ends so too when the client goes away first. Sends `100 Continue` where it is waited for.
 * A body whose length is said beforehand is the beginning of what `memory` gives, which is asked with its first byte.
 */
export function collectBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  memory: BodyMemory | undefined,
  ended: BodyEnd,
): void {
  let open = true
  const end: BodyEnd = (body, error) => {
    if (!open) return
    open = false
    ended(body, error)
  }
  const refuse = () => {
    discardBody(request)
    end(null, new BodyError('too-large', `The body is larger than ${maxBytes} bytes`))
  }
  // An error closes the request too, and is not thrown where nobody listens to it.
  request.on('close', () => {
    if (open && !request.complete) end(null, new BodyError('incomplete', 'The connection closed before the whole body had come'))
  })
  const { 'content-length': said, expect } = request.headers
  const length = said === undefined ? 0 : Number(said)
  if (length > maxBytes) {
    refuse()
    return
  }
  if (expect !== undefined) response.writeContinue()
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let whole: Buffer | null = null
  let size = 0
  const collect = (chunk: Buffer) => {
    if (size === 0 && length > chunk.length) whole = memory?.(length) ?? null
    size += chunk.length
    if (whole) whole.set(chunk, size - chunk.length)
    else if (size <= maxBytes) {
      if (!first) first = chunk
      else if (chunks) chunks.push(chunk)
      else chunks = [first, chunk]
    } else {
      chunks = null
      first = null
      request.off('data', collect)
      refuse()
    }
  }
  request.on('data', collect)
  request.on('end', () => end(whole?.subarray(0, size) ?? (chunks ? Buffer.concat(chunks, size) : (first ?? Buffer.alloc(0))), null))
}

/** As `collectBody`. */
export function readBody(request: IncomingMessage, response: ServerResponse, maxBytes: number, memory?: BodyMemory): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    collectBody(request, response, maxBytes, memory, (body, error) => (body ? resolve(body) : reject(error)))
  })
}
