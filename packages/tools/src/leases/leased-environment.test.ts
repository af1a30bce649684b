import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment, LeaseTask } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openTestServer, type TestServer } from '../testing/open-test-server.ts'
import { selfSigned } from '../testing/self-signed.ts'
import { openStandIn } from '../testing/stand-in.ts'

const never = new AbortController().signal
let folder = ''
let server: TestServer
let environment: Environment
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'leased-environment-'))
  server = await openTestServer()
  environment = createEnvironment({ baseDirectory: folder, startTimeoutMs: 60_000 })
})
afterEach(async () => {
  await environment.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

const selection = (agent = 'agent', token = server.connectionToken, url = server.url) => ({
  agent,
  mcpConfig: {
    mcpServers: {
      'aworld-mcp': {
        type: 'streamable-http' as const,
        url,
        headers: { Authorization: `Bearer ${token}`, MCP_SERVERS: 'notes-server,desk-server' },
      },
    },
  },
})
const leaseOf = (rollout: string, task: Partial<LeaseTask> = {}, attempt = 0) =>
  environment.lease({ rollout, attempt, sample: 0, task: { id: 'task', ...task } })
const append = async (lease: ReturnType<typeof leaseOf>, text: string, agent = 'agent') => {
  const tools = await lease.tools(selection(agent), never)
  return (await tools.call({ name: 'notes-server__append', arguments: { text } }, never)).content
}

describe('an environment on an environment server', () => {
  it('has one lease for each rollout, which its agents share and which ends with it', async () => {
    const [one, other] = [leaseOf('a'), leaseOf('b')]
    expect(await append(one, '1', 'planner')).toBe('1')
    expect(await append(other, '2')).toBe('2')
    expect(await append(one, '3', 'worker')).toBe('1,3')
    expect(server.status().leases.map(({ task }) => task)).toEqual(['task', 'task'])
    await one.close()
    expect(server.status().leases).toHaveLength(1)
    await environment.close()
    expect(server.status().leases).toEqual([])
    expect(server.sandbox.open).toEqual([])
  })

  it('collects files of its workspace and of the directory of its stdio servers', async () => {
    await environment.close()
    environment = createEnvironment({ baseDirectory: folder, startTimeoutMs: 60_000, collect: ['notes.txt', 'out/**'] })
    const lease = leaseOf('a')
    await append(lease, '1')
    mkdirSync(join(lease.directory, 'out'))
    writeFileSync(join(lease.directory, 'out/local'), 'here')
    const text = async () => (await lease.collect(never))!.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])
    expect(await text()).toEqual([
      ['out/local', 'here'],
      ['notes.txt', '1\n'],
    ])
    writeFileSync(join(lease.directory, 'notes.txt'), 'another')
    await expect(text()).rejects.toMatchObject({ code: 'FILES_REFUSED', message: expect.stringContaining('two workspaces') })
    server.sandbox.open[0]!.die()
    await expect(text()).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED', retryable: true })
    await lease.close()
    const none = createEnvironment()
    expect(await none.lease({ rollout: 'a', attempt: 0, sample: 0, task: { id: 'task' } }).collect(never)).toBeNull()
    await none.close()
  })

  it('asks for the web where its entry says so, and tells why it is not there', async () => {
    const { agent, mcpConfig } = selection()
    const entry = { ...mcpConfig.mcpServers['aworld-mcp'], net: true }
    const tools = leaseOf('a').tools({ agent, mcpConfig: { mcpServers: { 'aworld-mcp': entry } } }, never)
    await expect(tools).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('Port 3128 cannot be opened in memory'),
    })
    expect(server.sandbox.open).toEqual([])
    const other = await openStandIn(() => ({ status: 404, body: 'no such path' }))
    const without = leaseOf('b').tools({ agent, mcpConfig: { mcpServers: { other: { url: `${other.url}/mcp`, net: true } } } }, never)
    await expect(without).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('it leases no workspace and so no way to the web: status 404 no such path'),
    })
    await other.close()
  })

  it('has one workspace at an address, which is the same for all entries', async () => {
    const { agent, mcpConfig } = selection()
    const entry = mcpConfig.mcpServers['aworld-mcp']
    const both = { mcpServers: { first: entry, second: { ...entry, desktop: true } } }
    await expect(leaseOf('a').tools({ agent, mcpConfig: both }, never)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /^The MCP servers "first" and "second" of one rollout are at .* give both the same "desktop" and "net"\.$/,
      ),
    })
  })

  it('shares nothing with another run whose rollouts have the same names', async () => {
    const another = createEnvironment()
    await append(leaseOf('a'), '1')
    const lease = another.lease({ rollout: 'a', attempt: 0, sample: 0, task: { id: 'task' } })
    const tools = await lease.tools(selection(), never)
    expect((await tools.call({ name: 'notes-server__append', arguments: { text: '2' } }, never)).content).toBe('2')
    await another.close()
  })

  it('lays the files of the task and of its set-up into the workspace', async () => {
    writeFileSync(join(folder, 'notes.txt'), 'from the task\n')
    expect(await append(leaseOf('a', { files: ['notes.txt'] }), '2')).toBe('from the task,2')
    expect(await append(leaseOf('b', { setup: { files: { 'notes.txt': 'from the set-up\n' } } }), '2')).toBe('from the set-up,2')
  })

  it('ends an older attempt with the newer one, as a fault of the environment', async () => {
    const older = leaseOf('a')
    const tools = await older.tools(selection(), never)
    await append(leaseOf('a', {}, 1), 'new')
    await expect(tools.call({ name: 'notes-server__append', arguments: { text: 'old' } }, never)).rejects.toMatchObject({
      code: 'TOOL_SERVER_DIED',
    })
  })

  it.each([
    ['a file that is missing', { files: ['gone.pdf'] }, /gone\.pdf cannot be read/],
    ['a file outside of it', { setup: { files: { '../x': 'x' } } }, /was not taken/],
  ])('tells of a workspace that cannot be made, and leaves no lease: %s', async (_, task, message) => {
    await expect(leaseOf('a', task).tools(selection(), never)).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(message),
    })
    expect(server.status().leases).toEqual([])
  })

  it('tells of a token that opens nothing', async () => {
    await expect(leaseOf('a').tools(selection('agent', 'wrong'), never)).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('Check the token in its headers.'),
    })
  })

  it('closes a lease that it refuses: its server has an address without encryption', async () => {
    const secure = await openTestServer({ tls: await selfSigned(), publicUrl: server.url })
    onTestFinished(() => secure.close())
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    await expect(leaseOf('a').tools(selection('agent', secure.connectionToken, secure.localUrl), never)).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('without encryption; start it with a --public-url of https'),
    })
    expect(secure.status().leases).toEqual([])
  })

  it('closes a lease whose answer it cannot read', async () => {
    const requests: string[] = []
    const http = createServer((request, response) => {
      requests.push(`${request.method} ${request.url} ${request.headers.authorization}`)
      response.writeHead(request.method === 'POST' ? 201 : 204, { location: '/v1/leases/l1' }).end('{"version":')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void http.close())
    await once(http, 'listening')
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
    await expect(leaseOf('a').tools(selection('agent', 'secret', url), never)).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringContaining('the server answered with something that is no lease'),
    })
    expect(requests).toEqual(['POST /v1/leases Bearer secret', 'DELETE /v1/leases/l1 Bearer secret'])
  })

  it('renews its token before it ends', async () => {
    const brief = await openTestServer({ leaseTtlMs: 6_000 })
    try {
      const lease = leaseOf('a')
      const tools = await lease.tools(selection('agent', brief.connectionToken, brief.url), never)
      await new Promise((resolve) => setTimeout(resolve, 9_000))
      expect((await tools.call({ name: 'notes-server__append', arguments: { text: '1' } }, never)).content).toBe('1')
      await lease.close()
    } finally {
      await brief.close()
    }
  })
})
