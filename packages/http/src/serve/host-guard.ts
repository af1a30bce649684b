import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TrainError } from '@aworld-train/core'
import { isLoopback } from './exposure.ts'
import { discardBody } from './read-body.ts'

/** The name in a `Host` header, before its port. */
const nameIn = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/

/**
 * A check of `Host` for a server on loopback. A page in a browser reaches such a server if the page's own name resolves to it, and it
 * cannot hide that name. A request without the header comes from no page. `allowed` are further names, without ports.
 */
function createHostCheck(allowed: readonly string[]): (host: string | undefined) => boolean {
  const names = new Set(allowed.map((name) => name.toLowerCase()))
  return (host) => {
    if (host === undefined) return true
    const name = nameIn.exec(host)?.[1]?.toLowerCase().replace(/\.$/, '')
    return name !== undefined && (isLoopback(name) || name.endsWith('.localhost') || names.has(name))
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export interface HostGuardOptions {
  /** The server's name in messages, such as "The gateway". */
  readonly what: string
  /** Names besides those of loopback, without ports. */
  readonly allowedHosts?: readonly string[] | undefined
  readonly onRefusal?: ((refusal: 'wrong-host') => void) | undefined
}

/** Refuses requests that name another host, before any handler sees them. */
export function createHostGuard({ what, allowedHosts = [], onRefusal }: HostGuardOptions) {
  const isAllowed = createHostCheck(allowedHosts)

  function refuse(host = ''): string {
    onRefusal?.('wrong-host')
    const message = `${what} listens on loopback, and the request is for ${JSON.stringify(host.slice(0, 100))}; ask for it as localhost or 127.0.0.1, or add the name to allowedHosts.`
    return JSON.stringify({ error: new TrainError('HOST_REFUSED', message).toRecord() })
  }

  return {
    handle:
      (handle: Handle): Handle =>
      (request, response) => {
        if (isAllowed(request.headers.host)) handle(request, response)
        else {
          const body = refuse(request.headers.host)
          response.writeHead(421, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
          response.end(body)
          if (!request.complete) discardBody(request)
        }
      },
    upgrade:
      (upgrade: Upgrade): Upgrade =>
      (request, socket, head) => {
        if (isAllowed(request.headers.host)) upgrade(request, socket, head)
        else {
          const body = refuse(request.headers.host)
          const fields = `Connection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`
          socket.on('error', () => socket.destroy())
          socket.end(`HTTP/1.1 421 Misdirected Request\r\n${fields}\r\n\r\n${body}`)
        }
      },
  }
}
