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

/**
 * The whole body of a request. One above `maxBytes` rejects with a BodyError at once; what still comes is discarded for
 * five seconds and never kept. Rejects too when the client goes away first. Sends `100 Continue` where it is waited for.
 * A body whose length is said beforehand is the beginning of what `memory` gives, which is asked with its first byte.
 */
export function readBody(request: IncomingMessage, response: ServerResponse, maxBytes: number, memory?: BodyMemory): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const refuse = () => {
      discardBody(request)
      reject(new BodyError('too-large', `The body is larger than ${maxBytes} bytes`))
    }
    const leave = () => {
      if (!request.complete) reject(new BodyError('incomplete', 'The connection closed before the whole body had come'))
    }
    request.once('error', leave)
    request.once('close', leave)
    const length = Number(request.headers['content-length'] ?? 0)
    if (length > maxBytes) {
      refuse()
      return
    }
    if (request.headers.expect !== undefined) response.writeContinue()
    const chunks: Buffer[] = []
    let whole: Buffer | null = null
    let size = 0
    const collect = (chunk: Buffer) => {
      if (size === 0 && length > chunk.length) whole = memory?.(length) ?? null
      size += chunk.length
      if (whole) {
        whole.set(chunk, size - chunk.length)
        return
      }
      if (size <= maxBytes) {
        chunks.push(chunk)
        return
      }
      chunks.length = 0
      request.off('data', collect)
      refuse()
    }
    request.on('data', collect)
    request.once('end', () => resolve(whole?.subarray(0, size) ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
  })
}
