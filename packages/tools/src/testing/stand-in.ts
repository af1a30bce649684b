import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface StandInRequest {
  readonly method: string
  /** Path and query, with the stand-in's origin. */
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The body as it came. */
  readonly bytes: Buffer
}

export interface StandInAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** A server on loopback that answers like a third party's service. */
export interface StandIn {
  readonly url: string
  readonly requests: readonly StandInRequest[]
  close(): Promise<void>
}

export const json = (value: unknown, status = 200): StandInAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

export const html = (body: string, status = 200): StandInAnswer => ({
  status,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body,
})

/** Opens a stand-in. A request for which `answer` returns null waits for ever. */
export async function openStandIn(answer: (request: StandInRequest) => StandInAnswer | null): Promise<StandIn> {
  const requests: StandInRequest[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const url = new URL(`http://${incoming.headers.host}${incoming.url}`)
    const bytes = Buffer.concat(chunks)
    const request = { method: incoming.method ?? '', url, headers: incoming.headers, body: bytes.toString('utf8'), bytes }
    requests.push(request)
    const reply = answer(request)
    if (reply) response.writeHead(reply.status ?? 200, reply.headers).end(reply.body)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
