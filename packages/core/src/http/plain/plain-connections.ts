import type { Socket } from 'node:net'
import { PlainConnection, type PlainServer } from './plain-connection.ts'

/** The connections of a server whose requests are read here. */
export interface PlainConnections {
  add(socket: Socket): void
  /** From now on each ends behind its answer; those that wait for a request end at once. */
  close(): void
  destroyAll(): void
}

export type PlainConnectionsOptions = Omit<PlainServer, 'handOver' | 'isOpen' | 'onClose'> & {
  /** Reads a socket with all that HTTP has. */
  readonly serveByNode: (socket: Socket) => void
}

/** How often connections are looked at, at most. */
const checkEveryMs = 1_000

/** As in `node:http`, 0 is no limit. */
const orNever = (milliseconds: number) => (milliseconds > 0 ? milliseconds : Number.POSITIVE_INFINITY)

export function createPlainConnections(options: PlainConnectionsOptions): PlainConnections {
  const limits = {
    headersTimeoutMs: orNever(options.headersTimeoutMs),
    requestTimeoutMs: orNever(options.requestTimeoutMs),
    keepAliveTimeoutMs: orNever(options.keepAliveTimeoutMs),
  }
  const connections = new Set<PlainConnection>()
  let isOpen = true
  const checks = setInterval(
    () => {
      const now = performance.now()
      for (const connection of connections) connection.checkTime(now)
    },
    Math.min(checkEveryMs, ...Object.values(limits)),
  )
  checks.unref()
  const server: PlainServer = {
    ...options,
    ...limits,
    isOpen: () => isOpen,
    onClose: (connection) => connections.delete(connection),
    handOver(connection, socket, bytes) {
      connections.delete(connection)
      // What is put back is read only by one who finds the socket at rest.
      socket.pause()
      socket.unshift(bytes)
      options.serveByNode(socket)
      socket.resume()
    },
  }
  return {
    add(socket) {
      connections.add(new PlainConnection(socket, server))
    },
    close() {
      isOpen = false
      clearInterval(checks)
      for (const connection of connections) if (connection.isIdle) connection.socket.destroy()
    },
    destroyAll() {
      for (const connection of connections) connection.socket.destroy()
    },
  }
}
