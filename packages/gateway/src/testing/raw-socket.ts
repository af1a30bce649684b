import { connect, type Socket } from 'node:net'

/** A client that sends bytes. */
export interface RawSocket {
  readonly socket: Socket
  received(): string
  closed(): boolean
  write(text: string | Uint8Array): void
}

/** Opens a socket, writes `text` and collects what arrives until the other side closes. */
export function talk(url: string, text: string | Uint8Array = ''): RawSocket {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true })
  let received = ''
  let closed = false
  socket.on('data', (chunk) => {
    received += chunk
  })
  // The other side has ended, so this side ends too, unless the test still writes.
  socket.on('end', () => {
    closed = true
  })
  socket.on('close', () => {
    closed = true
  })
  socket.on('error', () => {})
  if (text.length > 0) socket.write(text)
  return { socket, received: () => received, closed: () => closed, write: (more) => void socket.write(more) }
}

/** The bytes of a POST with a whole body. */
export function rawPost(path: string, body: string, headers: readonly string[] = []): string {
  return [`POST ${path} HTTP/1.1`, 'host: localhost', `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n')
}

/** The statuses of the answers in what a socket received. */
export const statusesIn = (received: string): number[] => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
