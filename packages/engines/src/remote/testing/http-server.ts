import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly json: Record<string, unknown>
}

export type Route = (request: ReceivedRequest, response: ServerResponse) => Promise<void> | void

/** A server on loopback whose answers a test determines. */
export interface TestServer {
  readonly url: string
  readonly seen: readonly ReceivedRequest[]
  /** Number of requests whose connection closed before their answer was whole. */
  aborted(): number
  /** Number of open sockets. */
  sockets(): number
  /** Sets the handler of later requests. */
  answer(route: Route): void
  /** Ends like a process that dies: sockets are reset, and the port refuses. */
  die(): Promise<void>
  /** Takes the same port again. */
  rise(): Promise<void>
  close(): Promise<void>
}

export const sendJson = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export async function createTestServer(first: Route): Promise<TestServer> {
  const seen: ReceivedRequest[] = []
  const sockets = new Set<Socket>()
  let route = first
  let aborted = 0

  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.once('close', () => {
      if (!response.writableFinished) aborted++
    })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://test')
    const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
    const one: ReceivedRequest = { method: request.method ?? '', path: pathname, query: searchParams, headers: request.headers, text, json }
    seen.push(one)
    await route(one, response)
  }
  const make = () => {
    const server = createServer((request, response) => void listener(request, response).catch(() => response.destroy()))
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    })
    return server
  }
  let server = make().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const die = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.resetAndDestroy()
    await closed
  }
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    aborted: () => aborted,
    sockets: () => sockets.size,
    answer(next) {
      route = next
    },
    die,
    async rise() {
      server = make().listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    close: die,
  }
}
