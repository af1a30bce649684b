import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ErrorCode, errorMessage, TrainError } from '@aworld-train/core'
import { checkExposure, isLoopback } from './exposure.ts'
import { createHostGuard } from './host-guard.ts'

/** Bounds of a server's sockets. None of them limits how long an answer may take. */
export interface HttpLimits {
  /** Most open connections. One more is closed at once. */
  readonly maxSockets: number
  readonly maxHeaderBytes: number
  /** How long a client may take to send its headers. */
  readonly headersTimeoutMs: number
  /** How long a client may take to send its whole request. */
  readonly requestTimeoutMs: number
  /** How long an idle connection stays open. */
  readonly keepAliveTimeoutMs: number
}

/** Certificate chain and key in PEM. */
export interface TlsIdentity {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

/** Why a socket or a request was refused before any handler saw it. */
export type SocketRefusal = 'timeout' | 'incomplete' | 'headers-too-large' | 'not-http' | 'too-many-sockets' | 'tls-failed' | 'wrong-host'

export interface HttpServerOptions {
  /** The server's name in messages, such as "The gateway". */
  readonly what: string
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly tls?: TlsIdentity | undefined
  /** Allows plain HTTP beyond loopback. */
  readonly insecure?: boolean | undefined
  /**
   * Names besides those of loopback that `Host` may have. They are checked only on loopback without TLS: elsewhere other machines reach the
   * server anyway, and a certificate is bound to a name.
   */
  readonly allowedHosts?: readonly string[] | undefined
  readonly limits: HttpLimits
  /** Code of the error if the port cannot be had. */
  readonly portError: ErrorCode
  /** Also called for requests with `Expect: 100-continue`; `readBody` sends the 100. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Answers requests for another protocol. Without it they are requests like others. */
  readonly upgrade?: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined
  readonly onRefusal?: ((refusal: SocketRefusal) => void) | undefined
}

export interface OpenHttpServer {
  readonly server: Server
  /** Address with neither path nor final slash; for a server on all addresses, that of loopback. */
  readonly url: string
  sockets(): number
  /** Takes no more connections, and ends those that wait for a request. Resolves when the last is gone. */
  close(): Promise<void>
}

const openHosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }

const refusals: Readonly<Record<string, readonly [SocketRefusal, number]>> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 431],
  HPE_INVALID_EOF_STATE: ['incomplete', 400],
  ERR_HTTP_REQUEST_TIMEOUT: ['timeout', 408],
}

/** Answers bytes that are no request, unless an answer is being written, because these bytes would be taken for its content. */
function refuseSocket(socket: Socket & { _httpMessage?: ServerResponse | null }, status: number): void {
  if (socket.writable && !socket._httpMessage?.headersSent) {
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    if (socket.readableEnded) socket.destroySoon()
    // A client that neither reads nor closes would keep the socket half open.
    else {
      const late = setTimeout(() => socket.destroy(), 1_000)
      socket.once('close', () => clearTimeout(late))
    }
  } else socket.destroy()
}

/**
 * Starts a `node:http` or `node:https` server. Rejects with CONFIG_INVALID if it would listen beyond loopback without TLS unasked or its
 * certificate cannot be used, and with `portError` if the port cannot be had.
 */
export async function openHttpServer(options: HttpServerOptions): Promise<OpenHttpServer> {
  const { what, host, port, tls, insecure = false, limits, portError, upgrade, onRefusal } = options
  checkExposure({ what, host, tls: tls !== undefined, insecure })
  const bounds: ServerOptions = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
    noDelay: true,
  }
  const server = tls ? createSecure(what, tls, bounds, limits) : createServer(bounds)
  const guard = tls || !isLoopback(host) ? null : createHostGuard(options)
  const handle = guard ? guard.handle(options.handle) : options.handle
  server.on('request', handle)
  server.on('checkContinue', handle)
  server.maxConnections = limits.maxSockets
  // A completion has no time limit here; deadlines are the rollout runner's.
  server.timeout = 0
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    // The rest of a refused request causes further errors, which need no second answer.
    if (socket.writableEnded) return
    const [refusal, status] = refusals[error.code ?? ''] ?? (['not-http', 400] as const)
    onRefusal?.(refusal)
    refuseSocket(socket, status)
  })
  server.on('drop', () => onRefusal?.('too-many-sockets'))
  server.on('tlsClientError', () => onRefusal?.('tls-failed'))
  if (upgrade) server.on('upgrade', guard ? guard.upgrade(upgrade) : upgrade)
  let sockets = 0
  server.on('connection', (socket: Socket) => {
    sockets++
    socket.once('close', () => sockets--)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (cause: NodeJS.ErrnoException) => {
    const reason =
      cause.code === 'EADDRINUSE' ? 'is in use; choose another port, or 0 for any free one' : `cannot be opened: ${cause.message}`
    reject(new TrainError(portError, `Port ${port} of ${host} ${reason}.`, { cause }))
  })
  server.listen({ host, port, backlog: 4096 }, resolve)
  await promise
  const { port: bound } = server.address() as AddressInfo
  const name = openHosts[host] ?? (host.includes(':') ? `[${host}]` : host)
  return {
    server,
    url: `${tls ? 'https' : 'http'}://${name}:${bound}`,
    sockets: () => sockets,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        // Connections that still answer close once their answer is written.
        server.keepAliveTimeout = 1
        server.keepAliveTimeoutBuffer = 0
      }),
  }
}

function createSecure(what: string, { cert, key }: TlsIdentity, bounds: ServerOptions, { headersTimeoutMs }: HttpLimits): Server {
  try {
    return createTlsServer({ ...bounds, cert, key, minVersion: 'TLSv1.2', handshakeTimeout: headersTimeoutMs })
  } catch (cause) {
    const reason = errorMessage(cause)
    throw new TrainError('CONFIG_INVALID', `${what} cannot use its certificate: ${reason}. Give a PEM chain and its unencrypted key.`, {
      cause,
    })
  }
}
