import { availableParallelism } from 'node:os'
import type { ParserJail } from '@aworld-train/core'
import { aworldToolServers } from '@aworld-train/environment'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toolServers } from '../table.ts'
import { callTool, connectClient, type Era, openLease, openTestServer, type TestServer, testServers } from '../testing/open-test-server.ts'
import { defineTool, type ToolServer } from '../tool-server.ts'

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function start(options: Parameters<typeof openTestServer>[0] = {}): Promise<TestServer> {
  const server = await openTestServer(options)
  open.push(server.close)
  return server
}

async function connect(server: TestServer, options: Partial<Parameters<typeof connectClient>[1]> = {}) {
  const client = await connectClient(server.url, { token: server.connectionToken, ...options })
  open.push(() => client.close())
  return client
}

describe.each<Era>(['modern', 'legacy'])('a client of the %s era', (era) => {
  it('lists the tools of all servers in the order of the table, and calls them', async () => {
    const server = await start()
    const client = await connect(server, { era })
    expect(client.getProtocolEra()).toBe(era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      'notes-server__append',
      'notes-server__count',
      'notes-server__fail',
      'desk-server__execute',
      'desk-server__wait',
    ])
    expect(await callTool(client, 'notes-server__append', { text: 'a' })).toBe('a')
    expect(await client.callTool({ name: 'notes-server__append', arguments: { text: 'b' } })).toMatchObject({
      content: [{ type: 'text', text: 'a,b' }],
      structuredContent: { lines: ['a', 'b'] },
    })
  })

  it('has the servers that its header names, whatever their order, and no other', async () => {
    const server = await start()
    const names = async (selection: string) => {
      const client = await connect(server, { era, headers: { MCP_SERVERS: selection } })
      return (await client.listTools()).tools.map(({ name }) => name.split('__')[0])
    }
    expect(new Set(await names('desk-server'))).toEqual(new Set(['desk-server']))
    expect(await names(' desk-server, notes-server,')).toEqual(await names(''))
    const client = await connect(server, { era, headers: { MCP_SERVERS: 'desk-server' } })
    await expect(callTool(client, 'notes-server__append', { text: 'a' })).rejects.toThrow('There is no tool "notes-server__append".')
    await expect(names('nots-server')).rejects.toThrow(/There is no tool server .*nots-server.* Did you mean .*notes-server/)
  })

  it('sees a failing tool as a result, and a defect of one without its message', async () => {
    const errors: Error[] = []
    const server = await start({ onError: (error) => errors.push(error) })
    const client = await connect(server, { era })
    expect(await callTool(client, 'notes-server__fail', { how: 'tool' })).toBe('error: No such page; ask for another.')
    expect(await callTool(client, 'notes-server__append', { text: 3 })).toMatch(/^error: The arguments do not fit\. "text": .*string/)
    expect(await callTool(client, 'notes-server__append')).toMatch(/^error: The arguments do not fit\. "text"/)
    expect(await callTool(client, 'notes-server__append', { text: 'c', tone: 'merry', retries: 3 })).toMatch(
      /^c\[The tool has no argument "tone" and no argument "retries"; it ignored them\.\]$/,
    )
    await expect(callTool(client, 'notes-server__fail', { how: 'bug' })).rejects.toThrow(/"notes-server__fail" failed; the log/)
    expect(errors.map(({ message }) => message)).toEqual(['the key is sk-12345'])
    await expect(callTool(client, 'notes-server__apend')).rejects.toThrow('Did you mean "notes-server__append"?')
    expect(server.status().calls).toEqual({ total: 5, errors: 4 })
  })

  it('ends a call that it cancels', async () => {
    const server = await start()
    const client = await connect(server, { era })
    const controller = new AbortController()
    const call = client.callTool({ name: 'desk-server__wait', arguments: {} }, { signal: controller.signal }).catch(() => 'cancelled')
    await expect.poll(() => server.waits).toEqual(['begun'])
    controller.abort()
    expect(await call).toBe('cancelled')
    await expect.poll(() => server.waits).toEqual(['begun', 'cancelled'])
    await expect.poll(() => server.status().leases.map(({ running }) => running)).toEqual([0])
  })

  it('is answered a hundred calls at once', async () => {
    const server = await start()
    const client = await connect(server, { era })
    const sizes = await Promise.all(
      Array.from({ length: 100 }, (_, size) => callTool(client, 'notes-server__count', { value: Array(size).fill(0) })),
    )
    expect(sizes).toEqual(Array.from({ length: 100 }, (_, size) => String(size)))
  })
})

it('every server that AWorld documents may be asked for, that of the browser by both of its names', async () => {
  const server = await start({ servers: toolServers })
  const names = async (selection: readonly string[]) => {
    const client = await connect(server, { headers: { MCP_SERVERS: selection.join(',') } })
    return new Set((await client.listTools()).tools.map(({ name }) => name.split('__')[0]))
  }
  for (const name of ['browseruse-server', 'browser-server']) expect(await names([name])).toEqual(new Set(['browser-server']))
  expect(await names(aworldToolServers)).toEqual(new Set(toolServers.map(({ name }) => name)))
})

it.each([
  [{ host: '0.0.0.0' }, /without encryption/],
  [{ publicUrl: 'tools.example.com' }, /write the whole address/],
  [{ browserUrl: 'browser:9222' }, /write it as ws:/],
  [{ leaseTtlMs: 3_600_001 }, /an hour, and more than 0/],
  [{ servers: [...testServers(), testServers()[1]!] }, /Two tool servers are named "desk-server"/],
  [{ leaseTtlMs: 0 }, /an hour, and more than 0/],
])('is not opened with %o', async (options, message) => {
  await expect(openTestServer(options)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
})

describe('state', () => {
  it('is that of the lease, in whatever era and connection its token comes', async () => {
    const server = await start()
    const [a, b] = [await openLease(server), await openLease(server, { rollout: 'r2' })]
    const call = async (token: string, era: Era, text: string) =>
      callTool(await connect(server, { token, era, headers: { 'mcp-session-id': 'the-same' } }), 'notes-server__append', { text })
    await call(a.token, 'modern', '1')
    await call(b.token, 'modern', '2')
    expect(await call(a.token, 'legacy', '3')).toBe('1,3')
    expect(await call(b.token, 'legacy', '4')).toBe('2,4')
    expect(server.sandbox.open).toHaveLength(2)
  })

  it('is that of the session for a client that came without a lease', async () => {
    const server = await start()
    const session = (name: string) => connect(server, { headers: { SESSION_ID: name } })
    const [a, again, b] = [await session('a'), await session('a'), await session('b')]
    await callTool(a, 'notes-server__append', { text: '1' })
    await callTool(b, 'notes-server__append', { text: '2' })
    expect(await callTool(again, 'notes-server__append', { text: '3' })).toBe('1,3')
  })

  it('opens no workspace before a tool is called', async () => {
    const server = await start()
    await (await connect(server)).listTools()
    expect(server.sandbox.open).toHaveLength(0)
  })

  it('has one shell for each session of a lease, and the files of all', async () => {
    const server = await start()
    const { token } = await openLease(server)
    const agent = (name: string) => connect(server, { token, headers: { SESSION_ID: name } })
    const [a, b] = [await agent('r1.1.a'), await agent('r1.1.b')]
    await callTool(a, 'desk-server__execute', { command: 'cd deep' })
    expect(await callTool(a, 'desk-server__execute', { command: 'pwd' })).toBe('/workspace/deep')
    expect(await callTool(b, 'desk-server__execute', { command: 'pwd' })).toBe('/workspace')
    await callTool(a, 'notes-server__append', { text: '1' })
    expect(await callTool(b, 'notes-server__append', { text: '2' })).toBe('1,2')
    expect(server.sandbox.open.map(({ shells }) => shells)).toEqual([2])
  })
})

it.each(['parse', 'parseNative'] as const)('parsers take turns between leases, however many documents one has: %s', async (parser) => {
  const begun: string[] = []
  const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
  const parse: ParserJail['parse'] = async (_module, _bytes, options) => {
    begun.push(String(options))
    if (options === 'slow') await gate
    return {}
  }
  const parsers: ParserJail = { notices: [], parse, parseNative: parse, close: async () => {} }
  const reader: ToolServer = {
    name: 'reader-server',
    scope: 'files',
    description: 'Reads.',
    needs: [],
    tools: [
      defineTool({
        name: 'read',
        description: 'Reads.',
        input: z.object({ name: z.string() }),
        output: z.object({}),
        async call({ name }, { parsers, signal }) {
          await parsers[parser](new URL(import.meta.url), Buffer.alloc(0), name, signal)
          return {}
        },
        toText: () => 'read',
      }),
    ],
  }
  const server = await start({ parsers, servers: [reader] })
  const [many, one] = [
    await connect(server, { headers: { SESSION_ID: 'many' } }),
    await connect(server, { headers: { SESSION_ID: 'one' } }),
  ]
  const slow = Array.from({ length: 40 }, () => callTool(many, 'reader-server__read', { name: 'slow' }))
  await expect.poll(() => server.status().leases.find(({ rollout }) => rollout === 'many')?.running).toBe(40)
  expect(await callTool(one, 'reader-server__read', { name: 'quick' })).toBe('read')
  expect(begun.filter((name) => name === 'slow')).toHaveLength(Math.max(1, Math.floor(availableParallelism() / 2)))
  openGate()
  expect(await Promise.all(slow)).toEqual(slow.map(() => 'read'))
})
