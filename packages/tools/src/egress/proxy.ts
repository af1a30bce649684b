import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { createSlots, type Relay, type RelayHeaders, ToolError } from '@aworld-train/core'
import { BodyError, createSecretCheck, discardBody, type OutwardEnd, OutwardError, readBody } from '@aworld-train/http'
import type { Authority } from './authority.ts'

/** What came to proxies. */
export interface ProxyCounts {
  /** Requests that were sent on, or answered from the recording. */
  requests: number
  /** Requests and connections that the proxy itself refused: by the guard, without the password, or because they are none. */
  refused: number
  /** WebSockets, which it always refuses. */
  webSockets: number
}

export interface ProxyOptions {
  readonly authority: Authority
  readonly relay: Relay
  /** Name and password that every request needs; null if none does. */
  readonly credentials: ProxyCredentials | null
  /** Where it counts. */
  readonly counts: ProxyCounts
}

export interface ProxyCredentials {
  readonly username: string
  readonly password: string
}

/** Most connections of one lease's programs at once. */
export const maxConnections = 256
/** Silence after which a connection ends. The web has less time for an answer. */
const idleMs = 120_000
/** Most requests whose bodies and answers are in memory at once. The others wait unread. */
const maxInMemory = 12
/** Longest time in which a client takes an answer. */
const drainMs = 20_000
const maxHeaderBytes = 64 * 1024
/** Longest request of a program. */
const maxBodyBytes = 10_000_000

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** The first byte of a connection that begins with TLS. */
const tlsHandshake = 0x16

const statusOf: Readonly<Record<OutwardEnd, number>> = { refused: 403, late: 504, failed: 502 }

const passwordNeeded = {
  status: 407,
  text: 'The programs of this workspace have no network, and only its browser passes here; go on without it, or ask the operator for a lease with "net".',
  headers: { 'proxy-authenticate': 'Basic realm="workspace"' },
}

/** A refusal that the client reads. */
interface Refusal {
  readonly status: number
  readonly text: string
  readonly headers?: RelayHeaders | undefined
}

/**
 * An HTTP proxy for connections that are handed to it. It ends TLS itself, so that it sees every request, and passes requests to a relay.
 * HTTP/1.1 alone; WebSockets are refused. An answer is passed once it is there in full.
 */
export class EgressProxy {
  readonly #authority: Authority
  readonly #relay: Relay
  readonly #isAllowed: (authorization: string | undefined) => boolean
  readonly #server: Server
  /** What a connection leads to, if it is a tunnel. */
  readonly #tunnels = new WeakMap<object, string>()
  readonly #counts: ProxyCounts
  readonly #places = createSlots(maxInMemory)
  /** Connections with a request that waits for the answer to the one before. */
  readonly #waiting = new WeakSet<Socket>()
  #open = 0

  constructor({ authority, relay, credentials, counts }: ProxyOptions) {
    this.#authority = authority
    this.#relay = relay
    this.#counts = counts
    this.#isAllowed = credentials ? basicCheck(credentials) : () => true
    this.#server = createServer({ maxHeaderSize: maxHeaderBytes, keepAliveTimeout: idleMs }, (request, response) => {
      void this.#answerInTurn(request, response)
    })
    this.#server.timeout = idleMs
    this.#server.on('connect', (request, socket, head) => void this.#connect(request, socket, head))
    this.#server.on('clientError', (_, socket) => {
      this.#refuse(socket, { status: 400, text: 'This is a proxy for HTTP; what came is no request.' })
    })
  }

  /** Serves a connection until it ends. */
  serve(connection: Socket): void {
    connection.on('error', () => {})
    if (this.#open >= maxConnections) {
      this.#refuse(connection, { status: 503, text: `${maxConnections} connections are open already; end some.` })
      return
    }
    this.#open++
    connection.once('close', () => this.#open--)
    connection.setTimeout(idleMs, () => connection.destroy())
    this.#server.emit('connection', connection)
  }

  /** Answers a request after those before it on its connection. Of these one at most may be unanswered; clients do not send more. */
  async #answerInTurn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request
    if (response.socket === null) {
      if (this.#waiting.has(socket)) {
        socket.destroy()
        return
      }
      this.#waiting.add(socket)
      // It has none until its turn.
      await once(response, 'socket')
      this.#waiting.delete(socket)
    }
    await this.#answer(request, response)
  }

  /** Answers a request, of a tunnel or with a whole address. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.sendDate = false
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      const url = this.#target(request)
      const { method = '' } = request
      if (!methods.has(method)) throw new RefusalError({ status: 501, text: `${method.slice(0, 20)} is not passed on.` })
      this.#relay.check(url)
      await this.#places.take(gone.signal)
      if (gone.signal.aborted) {
        this.#places.give()
        return
      }
      response.once('close', () => this.#places.give())
      const body = await readBody(request, response, maxBodyBytes)
      this.#counts.requests++
      const headers = request.headers as RelayHeaders
      const answered = await this.#relay.send({ method, url, headers, body }, gone.signal)
      // Without its length, bytes would come in chunks. An answer without a body has no length of its own.
      const length = answered.bytes.length > 0 ? { 'content-length': String(answered.bytes.length) } : {}
      response.writeHead(answered.status, { ...answered.headers, ...length } as Record<string, string | string[]>)
      endInTime(response, answered.bytes)
    } catch (error) {
      if (gone.signal.aborted) return
      const { status, text, headers = {} } = this.#toRefusal(error)
      const last = request.complete ? {} : { connection: 'close' }
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers, ...last } as Record<string, string | string[]>)
      endInTime(response, request.method === 'HEAD' ? '' : `${text}\n`)
      if (!request.complete) discardBody(request)
    }
  }

  #target(request: IncomingMessage): URL {
    const { url: target = '', headers } = request
    const tunnel = this.#tunnels.get(request.socket)
    if (tunnel === undefined && !this.#isAllowed(headers['proxy-authorization'])) throw new RefusalError(passwordNeeded)
    if (headers.upgrade?.toLowerCase() === 'websocket') {
      this.#counts.webSockets++
      throw new RefusalError({ status: 403, text: 'WebSockets are not passed on, because they cannot be recorded; use requests.' })
    }
    const address = tunnel !== undefined && target.startsWith('/') ? `${tunnel}${target}` : target
    if (!/^https?:\/\//i.test(address) || !URL.canParse(address))
      throw new RefusalError({ status: 400, text: 'This is a proxy for HTTP; send it the whole address.' })
    return new URL(address)
  }

  /** Opens a tunnel, whose requests are answered like any other. */
  async #connect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => {})
    try {
      if (!this.#isAllowed(request.headers['proxy-authorization'])) throw new RefusalError(passwordNeeded)
      const authority = request.url ?? ''
      if (
        this.#tunnels.has(request.socket) ||
        !/^(\[[\da-f:.]+\]|[^\s/?#@:[\]]+):\d+$/i.test(authority) ||
        !URL.canParse(`https://${authority}`)
      )
        throw new RefusalError({ status: 400, text: 'A tunnel leads to a host and a port.' })
      const { hostname } = new URL(`https://${authority}`)
      this.#relay.check(new URL(`${authority.endsWith(':80') ? 'http' : 'https'}://${authority}`))
      const secureContext = await this.#authority.contextFor(hostname.replace(/^\[|\]$/g, ''))
      if (socket.destroyed) return
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      if (head.length > 0) socket.unshift(head)
      const first = await firstByte(socket)
      if (first === null) return
      if (first === tlsHandshake) {
        const inner = new TLSSocket(socket as Socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] })
        inner.on('error', () => inner.destroy())
        this.#enter(inner, `https://${authority}`)
      } else this.#enter(socket, `http://${authority}`)
    } catch (error) {
      this.#refuse(socket, this.#toRefusal(error))
    }
  }

  #enter(connection: Duplex, origin: string): void {
    this.#tunnels.set(connection, origin)
    this.#server.emit('connection', connection)
  }

  #toRefusal(error: unknown): Refusal {
    const refusal = toRefusal(error)
    if (refusal.status < 500 || refusal.status === 501) this.#counts.refused++
    return refusal
  }

  /** Writes a whole answer to a connection and ends it. */
  #refuse(socket: Duplex, { status, text, headers = {} }: Refusal): void {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const body = `${text}\n`
    const lines = Object.entries({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      ...headers,
      connection: 'close',
    })
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`, () => socket.destroy())
  }
}

class RefusalError extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.text)
    this.refusal = refusal
  }
}

function toRefusal(error: unknown): Refusal {
  if (error instanceof RefusalError) return error.refusal
  if (error instanceof OutwardError) return { status: statusOf[error.end], text: error.message }
  if (error instanceof BodyError) return { status: error.reason === 'too-large' ? 413 : 400, text: `${error.message}.` }
  return { status: 502, text: error instanceof ToolError ? error.message : 'The request failed; the log of the server says why.' }
}

/** Ends an answer. A client that does not read it loses its connection, because the answer stays in memory until then. */
function endInTime(response: ServerResponse, content: string | Uint8Array): void {
  const late = setTimeout(() => response.destroy(), drainMs)
  response.once('close', () => clearTimeout(late))
  response.end(content)
}

/** The check of a `Proxy-Authorization` against one name and password. */
function basicCheck({ username, password }: ProxyCredentials): (authorization: string | undefined) => boolean {
  const isSecret = createSecretCheck(Buffer.from(`${username}:${password}`).toString('base64'))
  return (authorization = '') => isSecret(/^basic +(\S+)$/i.exec(authorization)?.[1] ?? '')
}

/** Waits for the first byte of a connection, which stays in it; null if it ends before. */
function firstByte(socket: Duplex): Promise<number | null> {
  return new Promise((resolve) => {
    const look = () => {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      socket.off('readable', look)
      socket.unshift(chunk)
      resolve(chunk[0]!)
    }
    socket.on('readable', look)
    socket.once('close', () => resolve(null))
    look()
  })
}
