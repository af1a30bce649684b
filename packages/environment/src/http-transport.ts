import { setTimeout as delay } from 'node:timers/promises'
import {
  type FetchLike,
  type JSONRPCMessage,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client'
import { Agent, Headers, type RequestInit, fetch as undiciFetch } from 'undici'
import { sendPatiently } from './send-patiently.ts'
import type { HttpDefinition } from './server-definition.ts'
import { invalidAnswerCode, streamEndCode } from './tool-result.ts'

/** The error for a body that is not read to its end. */
export class InvalidAnswerError extends Error {}

export interface HttpTransport {
  readonly transport: Transport
  /** Ends the server's session, if there is one, and closes the sockets. */
  close(): Promise<void>
}

/** Headers that identify the caller. */
export interface RequestIdentity {
  /** Headers that tell a remote server whose calls these are. */
  readonly identity: Readonly<Record<string, string>>
  /** `Authorization` of a lease on the server, instead of the configured one. */
  readonly authorization?: (() => string) | undefined
}

/**
 * Creates the SDK's HTTP transport over a pool of our own that never gives up on a slow answer: deadlines are the caller's. An answer in
 * JSON that is longer than `maxMessageBytes` or not UTF-8 fails with InvalidAnswerError.
 */
export function createHttpTransport(
  { kind, url, headers, callTimeoutMs }: HttpDefinition,
  { identity, authorization }: RequestIdentity,
  maxMessageBytes: number,
): HttpTransport {
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  /** Controllers that end the wait of each request, by its id. A cancelled request is not sent again. */
  const requests = new Map<unknown, AbortController>()
  const post = async (send: () => ReturnType<typeof undiciFetch>, { body, signal }: RequestInit) => {
    const { id, method, params } = JSON.parse(String(body)) as { id?: unknown; method?: string; params?: { requestId?: unknown } }
    if (method === 'notifications/cancelled') requests.get(params?.requestId)?.abort()
    const wait = new AbortController()
    if (id !== undefined) requests.set(id, wait)
    try {
      return await sendPatiently(send, callTimeoutMs, signal ? AbortSignal.any([signal, wait.signal]) : wait.signal)
    } finally {
      requests.delete(id)
    }
  }
  const fetch = (async (address: string | URL, init?: RequestInit) => {
    const headers = new Headers(init?.headers)
    if (authorization) headers.set('authorization', authorization())
    const send = () => undiciFetch(address, { ...init, headers, dispatcher })
    const response = init?.method === 'POST' ? await post(send, init) : await send()
    const body = response.body as ReadableStream<Uint8Array> | null
    if (!body || init?.method !== 'POST') return response
    const { status, statusText } = response
    const streamed = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const checked = body.pipeThrough(checkedBytes(maxMessageBytes, streamed ? String(init.body) : null))
    return new Response(checked, { status, statusText, headers: [...response.headers] })
  }) as FetchLike
  const options = { fetch, requestInit: { headers: { ...identity, ...headers } } }
  if (kind === 'sse') {
    return { transport: new SSEClientTransport(url, options), close: () => dispatcher.destroy() }
  }
  const transport = new AnsweringTransport(url, options)
  return {
    transport,
    close: async () => {
      if (transport.sessionId) await endSession(transport)
      await dispatcher.destroy()
    },
  }
}

/** The SDK's transport, in which every request gets an answer: an error if its stream ends before the answer. */
class AnsweringTransport extends StreamableHTTPClientTransport {
  override async send(message: JSONRPCMessage | JSONRPCMessage[], options?: TransportSendOptions): Promise<void> {
    const isRequest = !Array.isArray(message) && 'method' in message && 'id' in message
    // The listener of a stream of notifications deals with its end.
    if (!isRequest || options?.onRequestStreamEnd) return await super.send(message, options)
    const error = { code: streamEndCode, message: 'the stream of its answer ended before the answer' }
    // If the answer came before, it has settled the request, and this error belongs to no request.
    const onRequestStreamEnd = () => this.onmessage?.({ jsonrpc: '2.0', id: message.id, error })
    await super.send(message, { ...options, onRequestStreamEnd })
  }
}

/** Tells the server to forget the session. A server that does not answer forgets it by itself. */
async function endSession(transport: StreamableHTTPClientTransport): Promise<void> {
  const deadline = new AbortController()
  const late = delay(1_000, undefined, { signal: deadline.signal })
  await Promise.race([transport.terminateSession(), late]).catch(() => {})
  deadline.abort()
  await late.catch(() => {})
}

/**
 * Passes bytes on while they may be an answer. Other bytes fail the body. In a stream of events, where the SDK would go on waiting, the
 * error becomes the answer to `request`.
 */
function checkedBytes(maxBytes: number, request: string | null): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let bytes = 0
  const check = (controller: TransformStreamDefaultController<Uint8Array>, chunk?: Uint8Array): boolean => {
    bytes += chunk?.length ?? 0
    let problem = bytes > maxBytes ? `is longer than ${maxBytes} bytes` : null
    try {
      if (!problem) decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      problem = 'is not valid UTF-8'
    }
    if (!problem) return true
    const message = `The answer ${problem}.`
    if (request === null) throw new InvalidAnswerError(message)
    const refusal = { jsonrpc: '2.0', id: JSON.parse(request).id, error: { code: invalidAnswerCode, message } }
    controller.enqueue(Buffer.from(`\n\nevent: message\ndata: ${JSON.stringify(refusal)}\n\n`))
    controller.terminate()
    return false
  }
  return new TransformStream({
    transform: (chunk, controller) => {
      if (check(controller, chunk)) controller.enqueue(chunk)
    },
    flush: (controller) => void check(controller),
  })
}
