import { IncomingMessage, ServerResponse } from 'node:http'
import { type BodyEnd, type BodyMemory, incompleteBody, lingerMs, tooLarge } from './body.ts'
import type { HttpRequest, HttpResponse } from './message.ts'
import { PlainRequest } from './plain/plain-request.ts'

/** Throws away what still comes of a request that is answered already; after five seconds its connection ends. */
export function discardBody(request: HttpRequest): void {
  if (request instanceof PlainRequest) request.discard()
  else if (request instanceof IncomingMessage) discardIncoming(request)
}

function discardIncoming(request: IncomingMessage): void {
  const linger = setTimeout(() => request.destroy(), lingerMs)
  request.once('end', () => clearTimeout(linger))
  request.once('close', () => clearTimeout(linger))
  request.resume()
}

/**
 * The whole body of a request, once. One above `maxBytes` ends with an error at once; what still comes is discarded for
 * five seconds and never kept. Ends so too when the client goes away first. Sends `100 Continue` where it is waited for.
 * A body whose length is said beforehand is the beginning of what `memory` gives, which is asked with its first byte.
 */
export function collectBody(
  request: HttpRequest,
  response: HttpResponse,
  maxBytes: number,
  memory: BodyMemory | undefined,
  ended: BodyEnd,
): void {
  if (request instanceof PlainRequest) request.collect(maxBytes, memory, ended)
  else if (request instanceof IncomingMessage) {
    collectIncoming(request, response, maxBytes, memory, ended)
  }
}

function collectIncoming(
  request: IncomingMessage,
  response: HttpResponse,
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
    end(null, tooLarge(maxBytes))
  }
  // An error closes the request too, and is not thrown where nobody listens to it.
  request.on('close', () => {
    if (open && !request.complete) end(null, incompleteBody())
  })
  const { 'content-length': said, expect } = request.headers
  const length = said === undefined ? 0 : Number(said)
  if (length > maxBytes) {
    refuse()
    return
  }
  if (expect !== undefined && response instanceof ServerResponse) response.writeContinue()
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
export function readBody(request: HttpRequest, response: HttpResponse, maxBytes: number, memory?: BodyMemory): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    collectBody(request, response, maxBytes, memory, (body, error) => (body ? resolve(body) : reject(error)))
  })
}
