import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment, McpServerConfig } from '@aworld-train/core'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createEnvironment } from './create-environment.ts'
import { type AgentLease, leaseTools } from './testing/agent-lease.ts'

const script = fileURLToPath(new URL('./testing/tool-server.ts', import.meta.url))
const never = new AbortController().signal
const scratch = mkdtempSync(join(tmpdir(), 'environment-http-'))
const cleanups: (() => unknown)[] = []
afterAll(() => rmSync(scratch, { recursive: true, force: true }))
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function startServer(flags: readonly string[]): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, [script, ...flags], { stdio: ['pipe', 'pipe', 'inherit'] })
  cleanups.push(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  })
  const [port] = await once(child.stdout!, 'data')
  return { url: `http://127.0.0.1:${Number(String(port))}/mcp`, child }
}

function environment(): Environment {
  const created = createEnvironment({ startTimeoutMs: 60_000, graceMs: 10_000 })
  cleanups.push(() => created.close())
  return created
}
const openLease = (from: Environment, rollout: string, config: McpServerConfig): Promise<AgentLease> =>
  leaseTools(from, { mcpConfig: { mcpServers: { remote: config } } }, { rollout, attempt: 1 })
const call = (lease: AgentLease, name: string, input: Record<string, unknown> = {}, signal = never) =>
  lease.tools.call({ name, arguments: input }, signal)

describe.each(['modern', 'sessions'])('a server over HTTP, %s', (mode) => {
  it('lists its tools and answers many calls at once', async () => {
    const { url } = await startServer(['--http', mode])
    const from = environment()
    const [own, shared] = await Promise.all([openLease(from, 'a', { url }), openLease(from, 'b', { url, stateless: true })])
    expect((await own.tools.list()).map(({ name }) => name)).toContain('echo')
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => call(index % 2 ? own : shared, 'echo', { text: String(index) })),
    )
    expect(answers.map(({ content }) => Number(content))).toEqual(Array.from({ length: 60 }, (_, index) => index))
    expect(await call(own, 'fail')).toEqual({ content: 'no such page', isError: true })
    expect(await call(own, 'refuse')).toMatchObject({ isError: true })
    expect(await from.counts()).toEqual({ toolCalls: 62, toolErrors: 2, serverToolCalls: null, serversStarted: 0, serversLost: 0 })
  })

  it('gives up a slow call at the deadline of its configuration, and goes on', async () => {
    const { url } = await startServer(['--http', mode])
    const lease = await openLease(environment(), 'a', { url, timeout: 2 })
    await expect(call(lease, 'hang')).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' })
    expect((await call(lease, 'echo', { text: 'on' })).content).toBe('on')
    await expect(call(lease, 'hang', {}, AbortSignal.timeout(50))).rejects.toThrow('timeout')
  })

  it('waits on for a slow call that tells of its progress', async () => {
    const { url } = await startServer(['--http', mode])
    const lease = await openLease(environment(), 'a', { url, timeout: 2 })
    expect(await call(lease, 'slow', { steps: 13 })).toEqual({ content: 'done', isError: false })
  })

  it('refuses an answer that is too long, and goes on', async () => {
    const { url } = await startServer(['--http', mode])
    const lease = await openLease(environment(), 'a', { url, timeout: 60 })
    for (const bytes of [2_000_000, 100_000_000]) {
      expect(await call(lease, 'big', { bytes })).toEqual({ content: expect.stringContaining('TOOL_RESULT_INVALID'), isError: true })
    }
    expect((await call(lease, 'echo', { text: 'on' })).content).toBe('on')
  })

  it('fails with a typed error when the server dies, and when it was never there', async () => {
    const { url, child } = await startServer(['--http', mode])
    const lease = await openLease(environment(), 'a', { url })
    child.kill('SIGKILL')
    await once(child, 'exit')
    await expect(call(lease, 'echo')).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED', message: expect.stringContaining('"remote"') })
    await expect(call(lease, 'echo')).rejects.toBe(lease.lost.reason)
    await expect(openLease(environment(), 'b', { url })).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(/"remote" \(http:.*ECONNREFUSED.*Check its url/s),
    })
  })
})

it('an environment server that does not listen is named with the command that starts one', async () => {
  const { url, child } = await startServer(['--http', 'modern'])
  child.kill('SIGKILL')
  await once(child, 'exit')
  await expect(openLease(environment(), 'a', { url, headers: { MCP_SERVERS: 'terminal-server' } })).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringMatching(/"remote" \(http:.*ECONNREFUSED.*"aworld-train env start"/),
  })
})

describe('a request to a remote server', () => {
  it('says whose it is, and ends its session', async () => {
    const log = join(scratch, 'log')
    const { url } = await startServer(['--http', 'sessions', '--log', log])
    const from = environment()
    const lease = await openLease(from, 'run/1', { url })
    await call(lease, 'echo')
    await lease.close()
    const lines = readFileSync(log, 'utf8').trim().split('\n')
    expect(lines).toContain('POST run%2F1.1.agent')
    expect(lines.at(-1)).toBe('DELETE run%2F1.1.agent')
  })

  it('carries the headers of the configuration', async () => {
    const seen: (string | undefined)[] = []
    const http = createServer((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(401).end('no')
    }).listen(0, '127.0.0.1')
    cleanups.push(() => http.close())
    await once(http, 'listening')
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
    const refused = openLease(environment(), 'a', { url, headers: { Authorization: 'Bearer abc' } })
    await expect(refused).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(/"remote".*401.*Check the token in its headers/),
    })
    expect(seen[0]).toBe('Bearer abc')
  })

  it('is refused with the status of a service that is none of MCP', async () => {
    const http = createServer((_, response) => response.writeHead(404).end('no such page')).listen(0, '127.0.0.1')
    cleanups.push(() => http.close())
    await once(http, 'listening')
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mpc`
    await expect(openLease(environment(), 'a', { url })).rejects.toMatchObject({
      message: expect.stringMatching(/"remote".*no such page \(HTTP 404\).*Check its url/),
    })
  })

  it('is given the time that the configuration names, where the service is slow to start', async () => {
    const { url: service } = await startServer(['--http', 'modern'])
    const slow = createTcpServer((socket) => {
      const onward = connect(Number(new URL(service).port), '127.0.0.1')
      for (const each of [socket, onward]) each.on('error', () => {})
      setTimeout(() => void socket.pipe(onward).pipe(socket), 700)
    }).listen(0, '127.0.0.1')
    cleanups.push(() => slow.close())
    await once(slow, 'listening')
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/mcp`
    const impatient = createEnvironment({ startTimeoutMs: 300, graceMs: 300 })
    cleanups.push(() => impatient.close())
    await expect(openLease(impatient, 'a', { url })).rejects.toMatchObject({ message: expect.stringContaining('within 0.3 s') })
    expect((await (await openLease(impatient, 'b', { url, timeout: 60 })).tools.list()).length).toBeGreaterThan(0)
  })
})

interface StubRequest {
  readonly id: number
  readonly method: string
}

/** A server of one tool, whose calls `answerCall` answers. Every other request is answered with JSON. */
async function startStub(
  answerCall: (request: StubRequest, response: ServerResponse, number: number) => void,
  tools: readonly unknown[] = [],
) {
  const tool = { name: 'look', inputSchema: { type: 'object' } }
  const results: Record<string, unknown> = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'stub', version: '1' } },
    'tools/list': { tools: [tool, ...tools] },
  }
  let calls = 0
  const http = createServer(async (incoming, response) => {
    if (incoming.method !== 'POST') return void response.writeHead(405).end()
    const request = JSON.parse(String(Buffer.concat(await incoming.toArray()))) as StubRequest
    const { id, method } = request
    if (method === 'tools/call') return answerCall(request, response, calls++)
    if (id === undefined) return void response.writeHead(202).end()
    const answer = method in results ? { result: results[method] } : { error: { code: -32601, message: 'no such method' } }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }).listen(0, '127.0.0.1')
  cleanups.push(() => {
    http.closeAllConnections()
    http.close()
  })
  await once(http, 'listening')
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, calls: () => calls }
}
const seen = ({ id }: StubRequest) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'seen' }] } })
const inJson = (request: StubRequest, response: ServerResponse) =>
  void response.setHeader('content-type', 'application/json').end(seen(request))

describe('a call of a server over HTTP', () => {
  const stream = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' })
  it.each([
    ['ends', (response: ServerResponse) => void stream(response).end(': nothing yet\n\n')],
    ['ends at once', (response: ServerResponse) => void stream(response).end()],
    ['is cut', (response: ServerResponse) => void stream(response).write('data: {"jsonrpc"', () => response.destroy())],
    ['ends, and cannot be resumed', (response: ServerResponse) => void stream(response).end('id: 1\ndata:\n\n')],
  ])('whose stream %s before the answer has lost its server, long before the deadline', async (_, answer) => {
    const { url } = await startStub((_request, response) => answer(response))
    const lease = await openLease(environment(), 'a', { url, timeout: 6000 })
    await expect(call(lease, 'look')).rejects.toMatchObject({
      code: 'TOOL_SERVER_DIED',
      message: expect.stringContaining('the stream of its answer ended before the answer'),
    })
  })

  it('has its answer where the stream ends behind it', async () => {
    const { url } = await startStub((request, response) => void stream(response).end(`data: ${seen(request)}\n\n`))
    expect(await call(await openLease(environment(), 'a', { url }), 'look')).toEqual({ content: 'seen', isError: false })
  })

  it.each([429, 503])('that is refused with %i is sent again when the server says so', async (status) => {
    const { url, calls } = await startStub((request, response, number) =>
      number < 2 ? void response.writeHead(status, { 'retry-after': '0' }).end('busy') : inJson(request, response),
    )
    expect(await call(await openLease(environment(), 'a', { url }), 'look')).toEqual({ content: 'seen', isError: false })
    expect(calls()).toBe(3)
  })

  it('that is to wait longer than its deadline fails at once, with the reason', async () => {
    const { url, calls } = await startStub((_request, response) => void response.writeHead(503, { 'retry-after': '3600' }).end('busy'))
    await expect(call(await openLease(environment(), 'a', { url, timeout: 600 }), 'look')).rejects.toMatchObject({
      code: 'TOOL_SERVER_DIED',
      message: expect.stringMatching(/busy \(HTTP 503\) and asks to wait 3600 s, which is past the limit of 600 s/),
    })
    expect(calls()).toBe(1)
  })

  it('that waits is given up with its signal, and not sent again', async () => {
    const sent: number[] = []
    const { url } = await startStub((request, response, number) => {
      sent.push(request.id)
      if (number < 2) response.writeHead(429, { 'retry-after': String(1 + number) }).end()
      else inJson(request, response)
    })
    const lease = await openLease(environment(), 'a', { url, timeout: 600 })
    const controller = new AbortController()
    const waiting = call(lease, 'look', {}, controller.signal)
    await expect.poll(() => sent).toHaveLength(1)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    // By then, the first call would already have been sent.
    expect((await call(lease, 'look')).content).toBe('seen')
    expect(new Set(sent.slice(1)).size).toBe(1)
    expect(sent).toHaveLength(3)
  })
})

it('takes tools whose parameters are described as nothing as tools without any, and leaves out those that are for tasks', async () => {
  const properties = { city: { type: 'string' } }
  const { url } = await startStub(inJson, [
    { name: 'empty', inputSchema: {} },
    { name: 'none', inputSchema: null },
    { name: 'untyped', inputSchema: { properties } },
    { name: 'nullable', inputSchema: { type: ['object', 'null'], properties }, outputSchema: {} },
    { name: 'text', inputSchema: { type: 'string' } },
    { name: 'maybe', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } },
    { name: 'job', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } },
  ])
  const lease = await openLease(environment(), 'a', { url })
  const none = { type: 'object' }
  expect((await lease.tools.list()).map(({ name, parameters }) => [name, parameters])).toEqual([
    ['look', none],
    ['empty', none],
    ['none', none],
    ['untyped', { type: 'object', properties }],
    ['nullable', { type: 'object', properties }],
    ['text', none],
    ['maybe', none],
  ])
  expect(await call(lease, 'empty')).toEqual({ content: 'seen', isError: false })
})

it('a call whose server answers on one stream has lost it when that stream is cut', async () => {
  let stream: ServerResponse | undefined
  const { promise: called, resolve } = Promise.withResolvers<void>()
  const results: Record<string, unknown> = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'stub', version: '1' } },
    'tools/list': { tools: [{ name: 'look', inputSchema: {} }] },
  }
  const http = createServer(async (request, response) => {
    if (request.method === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void stream.write('event: endpoint\ndata: /messages\n\n')
    }
    const { id, method } = JSON.parse(String(Buffer.concat(await request.toArray()))) as StubRequest
    response.writeHead(202).end()
    if (method === 'tools/call') return resolve()
    const answer = method in results ? { result: results[method] } : { error: { code: -32601, message: 'no such method' } }
    if (id !== undefined) stream!.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n\n`)
  }).listen(0, '127.0.0.1')
  cleanups.push(() => {
    http.closeAllConnections()
    http.close()
  })
  await once(http, 'listening')
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`
  const lease = await openLease(environment(), 'a', { url, type: 'sse', timeout: 6000 })
  const calling = call(lease, 'look')
  await called
  stream!.destroy()
  await expect(calling).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
})
