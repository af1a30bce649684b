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

/**
 * The whole body of a request, once. Rejects with BodyError at once where it is above `maxBytes`; what still comes is discarded
 * for five seconds and never kept. Rejects so too when the client goes away first. Sends `100 Continue` where it is waited for.
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
 * The body of a request as it comes, once. Throws BodyError where it is above `maxBytes`, and where the client goes away first. What its
 * reader leaves is discarded for five seconds.
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
