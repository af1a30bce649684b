import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

const codes: Readonly<Record<number, string>> = { 401: 'SERVICE_UNAUTHORIZED', 403: 'HOST_REFUSED', 404: 'ROLLOUT_INVALID' }

/** Refuses a request for a WebSocket with an HTTP answer, whose body is the error as JSON, and ends the socket. */
export function refuseUpgrade(socket: Duplex, status: 401 | 403 | 404, message: string): void {
  const body = JSON.stringify({ error: { code: codes[status], boundary: 'trainer', retryable: false, message } })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 401 ? ['WWW-Authenticate: Bearer'] : []),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
