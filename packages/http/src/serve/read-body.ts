import type { IncomingMessage, ServerResponse } from 'node:http'

/** The reason why a body could not be read. */
export class BodyError extends Error {
  readonly reason: 'too-large' | 'incomplete'

  constructor(reason: 'too-large' | 'incomplete', message: string) {
    super(message)
    this.name = 'BodyError'
    this.reason = reason
  }
}

/** How long the rest of a refused body is discarded, so that its client can read the answer. */
const lingerMs = 5_000

/** Discards the rest of a request that is already answered. After five seconds its connection ends. */
export function discardBody(request: IncomingMessage): void {
  const linger = setTimeout(() => request.destroy(), lingerMs)
  request.once('end', () => clearTimeout(linger))
  request.once('close', () => clearTimeout(linger))
  request.resume()
}

/**
 * Reads the whole body of a request, once. Rejects with BodyError at once if it is above `maxBytes`; the rest is discarded for five seconds
 * and never kept. Also rejects when the client goes away first. Sends `100 Continue` if it is waited for.
 */
export function readBody(request: IncomingMessage, response: ServerResponse, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { 'content-length': length = '0', expect } = request.headers
    const chunks: Buffer[] = []
    let size = 0
    const collect = (chunk: Buffer): void => {
      size += chunk.length
      if (size > maxBytes) refuse()
      else chunks.push(chunk)
    }
    const refuse = (): void => {
      request.off('data', collect)
      discardBody(request)
      reject(new BodyError('too-large', `The body is larger than ${maxBytes} bytes`))
    }
    // An error closes the request too, so nobody needs to listen for `error`.
    request.on('close', () => {
      if (!request.complete) reject(new BodyError('incomplete', 'The connection closed before the whole body had come'))
    })
    if (Number(length) > maxBytes) {
      refuse()
      return
    }
    if (expect !== undefined) response.writeContinue()
    request.on('data', collect)
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)))
  })
}

/**
 * Yields the body of a request as it arrives, once. Throws BodyError if it is above `maxBytes` or the client goes away first. The part that
 * its reader leaves is discarded for five seconds.
 */
export async function* streamBody(request: IncomingMessage, response: ServerResponse, maxBytes: number): AsyncGenerator<Buffer> {
  const { 'content-length': length = '0', expect } = request.headers
  const tooLarge = () => new BodyError('too-large', `The body is larger than ${maxBytes} bytes`)
  let size = 0
  try {
    if (Number(length) > maxBytes) throw tooLarge()
    if (expect !== undefined) response.writeContinue()
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length
      if (size > maxBytes) throw tooLarge()
      yield chunk as Buffer
    }
  } catch (error) {
    if (error instanceof BodyError || request.complete) throw error
    throw new BodyError('incomplete', 'The connection closed before the whole body had come')
  } finally {
    if (!request.readableEnded && !request.destroyed) discardBody(request)
  }
}
