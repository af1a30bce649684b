import { buildConnector, Client, type Dispatcher, Pool } from 'undici'

export interface ConnectionsOptions {
  /** Scheme, host and port; a path is ignored. */
  readonly url: string
  readonly connectTimeoutMs: number
  /** How long an idle connection is kept, or less if the server names a shorter time. */
  readonly keepAliveMs: number
  readonly maxConnections: number
  /** Called when the server closed a connection without announcing that. */
  readonly onServerClosed: () => void
}

/** HTTP/1.1 connections to one server. */
export interface Connections {
  /** Sends over a free connection or, with `fresh`, over a new one, because a kept one has failed or all may be busy. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, fresh: boolean): void
  /** Closes the connections. Requests under way end with `reason`. */
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
    // An answer may take any time, because the caller's signal is the deadline of a call.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, connected) =>
      connector(target, (...made) => {
        const [, socket] = made
        // This adds the number of read bytes to an error of the system, as in undici's own error for a closed socket.
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
      // This connection closes when its request has ended.
      client.close(() => single.delete(client))
    },
    async close(reason) {
      await Promise.all([pool, ...single].map((each) => each.destroy(reason)))
    },
  }
}
