import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseAnswer } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callTool, connectClient, leaseOpen, openTestServer, request, type TestServer } from '../testing/open-test-server.ts'

const never = new AbortController().signal
let folder: string
let front: Server
let sharedUrl: string
let servers: TestServer[]
let connections: number

/** A port that passes each connection on to the next server, as an address of a cluster does. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'shared-address-'))
  servers = []
  connections = 0
  front = createServer((socket) => {
    const { port } = new URL(servers[connections++ % servers.length]!.localUrl)
    const upstream = connect(Number(port), '127.0.0.1')
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const)
      from.on('error', () => to.destroy()).pipe(to)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  sharedUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}/mcp`
  for (let count = 0; count < 2; count++) {
    // A port of its own is found first, because the public address has it.
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address() as AddressInfo
    await new Promise((resolve) => probe.close(resolve))
    const publicUrl = `http://127.0.0.1:${port}/mcp`
    servers.push(await openTestServer({ keyFile: join(folder, 'key.pem'), port, publicUrl, sharedUrl, maxLeases: 2 }))
  }
})
afterEach(async () => {
  front.close()
  await Promise.all(servers.map((server) => server.close()))
  rmSync(folder, { recursive: true })
})

const selection = () => ({
  agent: 'agent',
  mcpConfig: {
    mcpServers: {
      'aworld-mcp': {
        type: 'streamable-http' as const,
        url: sharedUrl,
        headers: { Authorization: `Bearer ${servers[0]!.connectionToken}`, MCP_SERVERS: 'notes-server' },
      },
    },
  },
})

describe('servers that share an address and a key', () => {
  it('serve every call of a lease where it was opened; a full one sends the next rollout to another', async () => {
    const environment = createEnvironment({ startTimeoutMs: 60_000 })
    const rollouts = ['a', 'b', 'c', 'd']
    const leases = await Promise.all(
      rollouts.map(async (rollout) => {
        const lease = environment.lease({
          ...{ rollout, attempt: 0, sample: 0 },
          task: { id: 'task', setup: { files: { 'notes.txt': `${rollout}\n` } } },
        })
        return { lease, tools: await lease.tools(selection(), never) }
      }),
    )
    expect(servers.map((server) => server.status().leases.length)).toEqual([2, 2])
    for (const [index, { tools }] of leases.entries())
      for (const [count, text] of ['1', '2'].entries())
        expect((await tools.call({ name: 'notes-server__append', arguments: { text } }, never)).content).toBe(
          [rollouts[index], '1', '2'].slice(0, count + 2).join(),
        )
    await environment.close()
    expect(servers.map((server) => server.status().leases.length)).toEqual([0, 0])
  })

  it('say where a lease is, and that a full one may be asked again', async () => {
    const [first] = servers as [TestServer]
    const opened = await request(first, 'POST', '/v1/leases', leaseOpen)
    const { id, url } = LeaseAnswer.parse(await opened.json())
    expect([url, opened.headers.get('location')]).toEqual([first.url, new URL(`/v1/leases/${id}`, first.url).href])
    await request(first, 'POST', '/v1/leases', { ...leaseOpen, rollout: 'second' })
    const { status, headers } = await request(first, 'POST', '/v1/leases', { ...leaseOpen, rollout: 'third' })
    expect([status, headers.get('retry-after'), headers.get('connection')]).toEqual([503, '1', 'close'])
  })

  it("open to each other's connection tokens, and not to each other's leases", async () => {
    const [first, second] = servers as [TestServer, TestServer]
    const { token } = LeaseAnswer.parse(await (await request(first, 'POST', '/v1/leases', leaseOpen, second.connectionToken)).json())
    const client = await connectClient(first.localUrl, { token })
    expect(await callTool(client, 'notes-server__append', { text: '1' })).toBe('1')
    await client.close()
    const elsewhere = await fetch(second.localUrl, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
    expect(elsewhere.status).toBe(401)
  })
})
