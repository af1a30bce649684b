// The least that a relay of Node can do and still be one: `node:http` in front, an undici pool behind, bytes unread. It hangs up
// upstream when its client does, and waits where a client reads slowly.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

const [upstream, connections] = process.argv.slice(2)
const pool = new Pool(upstream!, { connections: Number(connections), pipelining: 1, bodyTimeout: 0, headersTimeout: 0 })
const hop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'upgrade', 'te', 'trailer'])

function forward(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const headers: string[] = []
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (!hop.has(rawHeaders[index]!.toLowerCase())) headers.push(rawHeaders[index]!, rawHeaders[index + 1]!)
  let abort: (() => void) | undefined
  let done = false
  response.on('close', () => {
    if (!done) abort?.()
  })
  pool.dispatch(
    { path: request.url!, method: 'POST', headers, body },
    {
      onRequestStart(controller) {
        abort = () => controller.abort(new Error('the client hung up'))
        if (response.destroyed) abort()
      },
      onResponseStart(controller, status, headers) {
        const kept: Record<string, string | string[] | undefined> = {}
        for (const name in headers) if (!hop.has(name)) kept[name] = headers[name]
        response.writeHead(status, kept)
        response.on('drain', () => controller.resume())
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause()
      },
      onResponseEnd() {
        done = true
        response.end()
      },
      onResponseError(_controller, error) {
        done = true
        if (response.headersSent) response.destroy()
        else response.writeHead(502).end(error.message)
      },
    },
  )
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => forward(request, response, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
})
server.keepAliveTimeout = 120_000
server.requestTimeout = 0
server.listen({ host: '127.0.0.1', port: 0, backlog: 8192 }, () => {
  const address = server.address()
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`)
})
