import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callTool, connectClient, openTestServer, type TestServer } from '../testing/open-test-server.ts'

const maxBodyBytes = 200_000
let server: TestServer
const errors: Error[] = []
beforeAll(async () => {
  server = await openTestServer({ maxBodyBytes, onError: (error) => errors.push(error) })
})
afterAll(async () => {
  await server.close()
  expect(errors).toEqual([])
})

const accept = 'application/json, text/event-stream'

interface Answer {
  readonly status: number
  readonly text: string
}

/** Sends bytes as they are, with headers of the newer era if asked for. */
async function send(body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(server.url, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.connectionToken}`, 'content-type': 'application/json', accept, ...headers },
    body: typeof body === 'string' ? body : new Uint8Array(body),
  })
  return { status: response.status, text: await response.text() }
}

/** A call in the older era, whose arguments are the given JSON text. */
const call = (input: string, name = 'notes-server__count', id = '1') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":${JSON.stringify(name)},"arguments":${input}}}`
const nested = (depth: number, open = '[', close = ']') => `${open.repeat(depth)}${close.repeat(depth)}`

describe('a request that is none is refused, and the next is answered', () => {
  it.each<[string, string | Uint8Array, number]>([
    ['no body', '', 400],
    ['no JSON', '{"jsonrpc":', 400],
    ['a number', '7', 400],
    ['null', 'null', 400],
    ['an empty list', '[]', 400],
    ['a list of more than a hundred', `[${Array(101).fill(call('{}')).join(',')}]`, 400],
    ['lists in lists', nested(90_000), 400],
    ['objects in objects', nested(10_000, '{"a":', '}').replace('{"a":}', '{}'), 400],
    ['no method', '{"jsonrpc":"2.0","id":1}', 400],
    ['a method that is a list', '{"jsonrpc":"2.0","id":1,"method":["tools/list"]}', 400],
    ['an id that is an object', call('{}', undefined, '{}'), 400],
    ['another version', call('{}').replace('2.0', '1.0'), 400],
    ['more than the limit', call(`{"value":"${'x'.repeat(maxBodyBytes)}"}`), 413],
  ])('%s', async (_name, body, status) => {
    expect((await send(body)).status).toBe(status)
    expect((await send(call('{"value":[1]}'))).text).toContain('"size":1')
  })

  it('in chunks, above the limit', async () => {
    const { hostname, port, pathname } = new URL(server.url)
    const authorization = `Bearer ${server.connectionToken}`
    const headers = { authorization, 'content-type': 'application/json', accept, 'transfer-encoding': 'chunked' }
    const outgoing = httpRequest({ hostname, port, path: pathname, method: 'POST', headers })
    outgoing.on('error', () => {})
    const answered = once(outgoing, 'response')
    const chunk = Buffer.alloc(50_000, 'x')
    for (let sent = 0; sent <= maxBodyBytes; sent += chunk.length) outgoing.write(chunk)
    const [response] = await answered
    expect(response.statusCode).toBe(413)
    outgoing.destroy()
  })

  it('of another type than JSON', async () => {
    expect((await send(call('{}'), { 'content-type': 'text/plain' })).status).toBe(415)
  })

  it('with a header that the body contradicts', async () => {
    const meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
    const body = call('{"value":[1]}').replace('"params":{', `"params":{${meta},`)
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }
    const right = await send(body, { ...headers, 'mcp-name': 'notes-server__count' })
    expect(right).toMatchObject({ status: 200, text: expect.stringContaining('"size":1') })
    const wrong = await send(body, { ...headers, 'mcp-name': 'desk-server__execute' })
    expect([wrong.status, JSON.parse(wrong.text).error.code]).toEqual([400, -32_020])
  })

  it('that never ends', async () => {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.write(`POST /mcp HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${server.connectionToken}\r\n`)
    socket.write(`content-type: application/json\r\naccept: ${accept}\r\ncontent-length: 100\r\n\r\n{`)
    expect((await send(call('{"value":[1]}'))).text).toContain('"size":1')
    socket.destroy()
  })
})

describe('arguments', () => {
  it.each([
    ['nested deep', `{"value":${nested(90_000)}}`],
    ['keys of objects', '{"__proto__":{"value":[1,2]},"constructor":1,"value":[1]}'],
    ['numbers beyond all', '{"value":[1e999],"other":-1e999}'],
    ['a key twice', '{"value":[1,2],"value":[1]}'],
    ['halves of characters', '{"value":["\\ud800"]}'],
    ['many keys', `{"value":[1]${Array.from({ length: 10_000 }, (_, index) => `,"k${index}":0`).join('')}}`],
  ])('%s are taken as data', async (_name, input) => {
    expect((await send(call(input))).text).toContain('"size":1')
  })

  it.each(['null', '7', '"text"', '[]', 'true'])('%s in place of an object is an error', async (input) => {
    const { status, text } = await send(call(input))
    expect(status).toBeLessThan(500)
    expect(text).toMatch(/"error"|"isError":true/)
  })
})

describe('headers', () => {
  it('that name many servers, or none, are answered shortly', async () => {
    for (const selection of ['x'.repeat(10_000), Array(2_000).fill('a').join(','), '../../etc', 'notes-server;desk-server']) {
      const { status, text } = await send(call('{}'), { MCP_SERVERS: selection })
      expect([status, text.length < 1_000]).toEqual([400, true])
    }
  })

  it('of a session that is too long are refused', async () => {
    expect((await send(call('{}'), { SESSION_ID: 'x'.repeat(1_025) })).status).toBe(400)
  })

  it('of another host are refused', async () => {
    const { hostname, port, pathname } = new URL(server.url)
    const outgoing = httpRequest({ hostname, port, path: pathname, headers: { host: 'rebound.example.com' } }).end()
    const [response] = await once(outgoing, 'response')
    response.resume()
    expect(response.statusCode).toBe(421)
  })
})

it('clients that leave in the middle of their calls leave nothing running', async () => {
  const before = server.waits.length
  const waiting = Array.from({ length: 50 }, () => {
    const controller = new AbortController()
    const { signal } = controller
    const headers = { authorization: `Bearer ${server.connectionToken}`, 'content-type': 'application/json', accept }
    fetch(server.url, { method: 'POST', headers, body: call('{}', 'desk-server__wait'), signal }).catch(() => {})
    return controller
  })
  await expect.poll(() => server.waits.length - before).toBe(50)
  for (const controller of waiting) controller.abort()
  await expect.poll(() => server.waits.slice(before).filter((event) => event === 'cancelled').length).toBe(50)
  expect(server.status().leases.every(({ running }) => running === 0)).toBe(true)
  const client = await connectClient(server.url, { token: server.connectionToken })
  expect(await callTool(client, 'notes-server__count', { value: [] })).toBe('0')
  await client.close()
})
