import { buildConnector, Client, type Dispatcher, Pool } from 'undici'

export interface ConnectionsOptions {
  /** Scheme, host and port; a path is not looked at. */
  readonly url: string
  readonly connectTimeoutMs: number
  /** How long a connection that nobody uses is kept; a server that names a shorter time is heeded. */
  readonly keepAliveMs: number
  readonly maxConnections: number
  /** The server closed a connection that it had not said it would. */
  readonly onServerClosed: () => void
}

/** HTTP/1.1 connections to one server. */
export interface Connections {
  /** Sends over a connection that is free, or over one of its own where it is `fresh`: since one that was there has failed, or all may be taken. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, fresh: boolean): void
  /** Requests under way end with `reason`. */
  close(reason: Error): Promise<void>
}

/** Errors of a socket that its server closed. */
const closedByServer: ReadonlySet<string | undefined> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

export function createConnections({ url, connectTimeoutMs, keepAliveMs, maxConnections, onServerClosed }: ConnectionsOptions): Connections {
  const { origin } = new URL(url)
  const connector = buildConnector({ timeout: connectTimeoutMs, allowH2: false })
  const options: Client.Options = {
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    // An answer takes as long as it takes: the deadline of a call is its caller's.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, connected) =>
      connector(target, (...made) => {
        const [, socket] = made
        // As undici's own error of a socket that closes does, the system's says how much was read.
        socket?.once('error', (error: NodeJS.ErrnoException & { socket?: object }) => {
          if (error.syscall) error.socket = { bytesRead: socket.bytesRead }
        })
        connected(...made)
      }),
  }
  const pool = new Pool(origin, { ...options, connections: maxConnections })
  pool.on('disconnect', (_origin, _targets, error: NodeJS.ErrnoException) => {
    if (closedByServer.has(error.code)) onServerClosed()
  })
  const single = new Set<Client>()
  return {
    dispatch(request, handler, fresh) {
      if (!fresh) {
        pool.dispatch(request, handler)
        return
      }
      const client = new Client(origin, options)
      single.add(client)
      client.dispatch(request, handler)
      // It closes when its request has ended.
      client.close(() => single.delete(client))
    },
    async close(reason) {
      await Promise.all([pool, ...single].map((each) => each.destroy(reason)))
    },
  }
}
