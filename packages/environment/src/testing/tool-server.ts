/** A server that does on request everything that a tool server should not. Tests start it as a child process. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import {
  type CallToolResult,
  createMcpHandler,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'

const { values: flags } = parseArgs({
  options: {
    /** Counts its calls in `stats://calls`. */
    count: { type: 'boolean', default: false },
    /** `modern` speaks both eras, one request at a time; `sessions` speaks the older one with sessions. Prints its port. */
    http: { type: 'string' },
    /** Speaks only the older protocol, and exits at anything else. */
    old: { type: 'boolean', default: false },
    /** Offers one more tool if this file is not empty. */
    extra: { type: 'string' },
    /** Stays when its input ends, and ignores SIGTERM. */
    stubborn: { type: 'boolean', default: false },
    /** Writes a line to this file when it starts. */
    log: { type: 'string' },
  },
})

const names = [
  'echo',
  'where',
  'remember',
  'recall',
  'hang',
  'block',
  'crash',
  'big',
  'invalid',
  'fail',
  'refuse',
  'child',
  'change',
  'image',
  'slow',
]
const tool = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: { type: 'object' as const } })
const extra = flags.extra && readFileSync(flags.extra, 'utf8').trim() ? ['extra'] : []
const offered = [...names, ...extra]
const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
let calls = 0
let memory = ''

type Answer = (
  input: Record<string, unknown>,
  request: Pick<ServerContext['mcpReq'], 'id' | 'signal' | '_meta' | 'notify'>,
  server: Server,
) => CallToolResult | Promise<CallToolResult>
const answers: Record<string, Answer> = {
  echo: ({ text: value }) => text(String(value)),
  where: () => text(JSON.stringify({ pid: process.pid, cwd: process.cwd(), env: process.env, args: process.argv.slice(2) })),
  remember: ({ value }) => {
    memory = String(value)
    return text('ok')
  },
  recall: () => text(memory),
  hang: (_, { signal }) => {
    signal.addEventListener('abort', () => flags.log && appendFileSync(flags.log, 'cancelled\n'))
    return new Promise(() => {})
  },
  block: () => {
    for (;;);
  },
  crash: () => {
    process.stderr.write('out of luck\n')
    process.exit(3)
  },
  big: ({ bytes }) => text('x'.repeat(Number(bytes))),
  invalid: (_, { id }) => {
    process.stdout.write(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n`, 'latin1'))
    return new Promise(() => {})
  },
  fail: () => ({ ...text('no such page'), isError: true }),
  refuse: () => {
    throw new Error('not like this')
  },
  child: () => text(String(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }).pid)),
  change: async (_, _request, server) => {
    offered.push('extra')
    await server.sendToolListChanged()
    return text('changed')
  },
  slow: async ({ steps }, request) => {
    for (let step = 1; step <= Number(steps); step++) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      const progressToken = request._meta?.progressToken
      if (progressToken !== undefined) await request.notify({ method: 'notifications/progress', params: { progressToken, progress: step } })
    }
    return text('done')
  },
  image: () => ({ content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }),
}

function createToolServer(): Server {
  const resources = flags.count ? { resources: {} } : {}
  const server = new Server({ name: 'test', version: '1.0.0' }, { capabilities: { tools: { listChanged: true }, ...resources } })
  server.setRequestHandler('tools/list', () => ({ tools: offered.map(tool) }))
  server.setRequestHandler('tools/call', ({ params }, context) => {
    calls++
    return answers[params.name]!(params.arguments ?? {}, context.mcpReq, server)
  })
  if (flags.count) {
    server.setRequestHandler('resources/read', ({ params }) => ({ contents: [{ uri: params.uri, text: String(calls) }] }))
  }
  return server
}

async function toRequest(incoming: IncomingMessage, origin: string): Promise<Request> {
  const body = incoming.method === 'POST' ? Buffer.concat(await incoming.toArray()) : null
  return new Request(new URL(incoming.url ?? '/', origin), {
    method: incoming.method ?? 'GET',
    headers: incoming.headers as Record<string, string>,
    body,
  })
}

function serveHttp(mode: string): void {
  const modern = createMcpHandler(createToolServer)
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const answer = async (request: Request): Promise<Response> => {
    if (flags.log) appendFileSync(flags.log, `${request.method} ${request.headers.get('session_id') ?? '-'}\n`)
    if (mode === 'modern') return modern.fetch(request)
    const session = sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (session) return session.handleRequest(request)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    })
    await createToolServer().connect(transport)
    return transport.handleRequest(request)
  }
  const http = createServer(async (incoming, outgoing) => {
    const response = await answer(await toRequest(incoming, 'http://localhost'))
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    for await (const chunk of response.body ?? [])
      if (!outgoing.write(chunk)) await new Promise((resolve) => outgoing.once('drain', resolve))
    outgoing.end()
  })
  http.listen(0, '127.0.0.1', () => process.stdout.write(`${(http.address() as AddressInfo).port}\n`))
  process.stdin.on('end', () => process.exit(0)).resume()
}

if (flags.log && !flags.http) appendFileSync(flags.log, `${process.pid}\n`)
if (flags.stubborn) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)
}
if (flags.http) serveHttp(flags.http)
else if (flags.old) {
  process.stdin.once('data', (chunk) => {
    if (!chunk.includes('"initialize"')) process.exit(1)
  })
  await createToolServer().connect(new StdioServerTransport())
} else serveStdio(createToolServer)
