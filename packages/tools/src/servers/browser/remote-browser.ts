import { randomBytes } from 'node:crypto'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorMessage, ToolError } from '@aworld-train/core'
import { z } from 'zod'

/** Port on the loopback of a workspace that leads to a browser elsewhere. */
export const remotePort = 9222

const version = z.object({ webSocketDebuggerUrl: z.url() })
const lookupTimeoutMs = 30_000

/** Resolves to the WebSocket of a browser's DevTools protocol. An `http` address is asked for it. */
async function endpointOf(address: string, signal: AbortSignal): Promise<URL> {
  const url = new URL(address)
  if (url.protocol === 'ws:' || url.protocol === 'wss:') return url
  try {
    const response = await fetch(new URL('/json/version', url), { signal: AbortSignal.any([signal, AbortSignal.timeout(lookupTimeoutMs)]) })
    const endpoint = new URL(version.parse(await response.json()).webSocketDebuggerUrl)
    // A browser behind another name or port does not know them.
    endpoint.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    endpoint.host = url.host
    return endpoint
  } catch (cause) {
    signal.throwIfAborted()
    throw new ToolError(
      `The browser at BROWSER_CDP_URL does not answer (${errorMessage(cause)}); its operator starts it, or corrects the address.`,
    )
  }
}

export interface RemoteBrowser {
  /** The path that connections have to ask for. Whoever does not know it, such as a command of the workspace, is not joined. */
  readonly path: string
  readonly serve: (connection: Socket) => void
}

/**
 * Serves connections of a workspace by joining their WebSockets to a browser elsewhere. Its address, which may hold a key, stays here.
 * Rejects with a ToolError if the browser does not answer.
 */
export async function joinRemoteBrowser(address: string, signal: AbortSignal): Promise<RemoteBrowser> {
  const path = `/${randomBytes(24).toString('hex')}`
  const endpoint = await endpointOf(address, signal)
  const isSecure = endpoint.protocol === 'wss:'
  const target = new URL(endpoint)
  target.protocol = isSecure ? 'https:' : 'http:'
  const server = createServer((_, response) => void response.writeHead(404).end())
  server.on('upgrade', ({ headers, url }: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (url !== path) return void socket.destroy()
    const onward = (isSecure ? httpsRequest : httpRequest)(target, { headers: { ...headers, host: target.host } })
    const end = () => void socket.destroy()
    socket.on('error', () => {}).once('close', () => onward.destroy())
    onward.once('error', end).once('response', end)
    onward.once('upgrade', (answer, remote, remoteHead) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`)
      remote.on('error', end).once('close', end)
      socket.once('close', () => remote.destroy())
      socket.write(remoteHead)
      remote.write(head)
      remote.pipe(socket).pipe(remote)
    })
    onward.end()
  })
  return { path, serve: (connection) => void server.emit('connection', connection) }
}
