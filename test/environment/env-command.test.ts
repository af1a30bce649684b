// @module-tag quick
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { McpConfig } from '@aworld-train/core'
import { createEnvironment, getAgentToolEnvAndServers } from 'aworld-train'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { json, openStandIn } from '../../packages/tools/src/testing/stand-in.ts'
import { type CliOptions, runCli } from '../support/run-cli.ts'

const never = new AbortController().signal
let project = ''
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'env-'))
})
afterEach(async () => {
  await env('stop')
  rmSync(project, { recursive: true, force: true })
})

const env = (action: string, args: readonly string[] = [], options: CliOptions = {}) =>
  runCli(['env', action, ...args], { cwd: project, ...options })
const start = (args: readonly string[] = [], options: CliOptions = {}) =>
  env('start', ['--port', '0', '--tier', 'simulated', ...args], options)
const connectionFile = () => join(project, '.aworld-train', 'environment', 'connection.json')
const connection = () => JSON.parse(readFileSync(connectionFile(), 'utf8'))

/** What an agent of the project is answered by a command, from the variables given and the files of the project alone. */
const command = (text: string, variables: Record<string, string> = {}) =>
  answer('terminal-server', 'execute_command', { command: text }, variables)

/** What an agent of the project is answered by a tool. */
async function answer(server: string, tool: string, input: Record<string, unknown>, variables: Record<string, string> = {}) {
  const { config } = getAgentToolEnvAndServers({ directory: project, variables, servers: [server] })
  const environment = createEnvironment()
  try {
    const lease = environment.lease({ rollout: 'r', attempt: 0, sample: 0, task: { id: 't' } })
    const tools = await lease.tools({ agent: 'agent', mcpConfig: config as McpConfig }, never)
    return (await tools.call({ name: `${server}__${tool}`, arguments: input }, never)).content
  } finally {
    await environment.close()
  }
}

describe('aworld-train env', () => {
  it("starts in the background, prints the JSON of AWorld's script, and is found by agents without arguments", async () => {
    const { code, stdout } = await start()
    expect(code).toBe(0)
    const [first, ...json] = stdout.split('\n')
    expect(first).toBe('Start mcp server success.')
    const server = JSON.parse(json.join('\n'))['virtualpc-mcp-server']
    expect(server).toMatchObject({ type: 'streamable-http', timeout: 6000, sse_read_timeout: 6000, client_session_timeout_seconds: 6000 })
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
    expect(server.headers.MCP_SERVERS.split(',')).toContain('terminal-server')
    expect(server.headers.Authorization).toBe(`Bearer ${connection().token}`)
    expect(statSync(connectionFile()).mode & 0o077).toBe(0)
    expect(await command('echo $((6 * 7))')).toContain('42')

    const status = await env('status')
    expect(status.stdout).toMatch(/^address +http/)
    expect(status.stdout).toMatch(/sandbox +simulated/)
    expect(status.stdout).toMatch(/googlesearch-server.*SEARXNG_BASE_URL/)
    const again = await start()
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('runs already')])

    const { stdout: token } = await env('token', ['--ttl', '1'])
    expect(await command('echo hello', { MCP_SERVER_URL: server.url, MCP_SERVER_TOKEN: token.trim() })).toContain('hello')

    expect((await env('stop')).stdout).toBe('stopped\n')
    expect(existsSync(connectionFile())).toBe(false)
    expect((await env('status')).code).toBe(1)
  })

  it('keeps keys out of what tools see, and names those that nothing uses', async () => {
    writeFileSync(
      join(project, '.env'),
      `TAVILY_API_KEY=tvly-secret-canary\nE2B_API_KEY=e2b-canary\nCODE_LLM_BASE_URL=\${MCP_LLM_BASE_URL}\n`,
    )
    expect((await start([], { env: { GUARD_LLM_API_KEY: 'sk-guard-canary' } })).code).toBe(0)
    const seen = await command('env; export -p; cat /proc/self/environ /proc/1/environ 2>&1; cat ../.env .env')
    expect(seen).not.toMatch(/canary/)
    const log = readFileSync(join(project, '.aworld-train', 'environment', 'server.log'), 'utf8')
    expect(log).toContain('E2B_API_KEY is set and not used')
    expect(log).toContain('refers to MCP_LLM_BASE_URL, which is not set')
    expect(log).not.toMatch(/canary/)
    const { stdout: status } = await env('status')
    expect(status).toContain('E2B_API_KEY is set and not used')
    expect(status).not.toMatch(/canary/)
  })

  it('replays what it recorded, and asks for what it did not record only where it was told to', async () => {
    const service = await openStandIn(({ url }) =>
      json({
        results: url.searchParams.get('pageno') === '1' ? [{ title: url.searchParams.get('q'), url: 'https://a.test/', content: '' }] : [],
      }),
    )
    const keys = { env: { SEARXNG_BASE_URL: service.url } }
    const search = (query: string) => answer('googlesearch-server', 'search_google', { query })
    try {
      await start(['--record', 'world.jsonl'], keys)
      expect(await search('one')).toContain('1. one')
      await env('stop')
      await start(['--replay', 'world.jsonl'], keys)
      expect(await search('one')).toContain('1. one')
      expect(await search('two')).toContain('The recorded world has no answer')
      await env('stop')
      const { length } = service.requests
      await start(['--replay', 'world.jsonl', '--miss', 'live'], keys)
      expect([await search('one'), service.requests.length]).toEqual([expect.stringContaining('1. one'), length])
      expect(await search('two')).toContain('1. two')
      await env('stop')
      expect((await start(['--miss', 'live'])).stderr).toContain('Give --miss with --replay')
    } finally {
      await service.close()
    }
  })

  it('is started again after it was killed, and tokens of before are taken', async () => {
    await start()
    const { pid, url, token } = connection()
    process.kill(pid, 'SIGKILL')
    await expect.poll(async () => (await env('status')).stdout).toMatch(/no environment runs here/)
    expect((await env('start', ['--port', new URL(url).port, '--tier', 'simulated'])).code).toBe(0)
    expect(await command('echo back', { MCP_SERVER_URL: url, MCP_SERVER_TOKEN: token })).toContain('back')
  })

  it('is started where one of before was killed whose number another program has now', async () => {
    await start()
    const { url, pid, ...left } = connection()
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => fetch(url).catch(() => 'gone')).toBe('gone')
    writeFileSync(connectionFile(), JSON.stringify({ ...left, url, pid: process.pid }))
    expect((await start()).stdout).toMatch(/^Start mcp server success/)
    expect(connection().pid).not.toBe(process.pid)
  })

  it('grants a lease what --max-quota says, and no more', async () => {
    expect((await start(['--max-quota', '{"processes": 30}'])).code).toBe(0)
    const { url, token } = connection()
    const lease = async (quota: object) => {
      const body = JSON.stringify({ version: 1, rollout: 'r', attempt: 0, task: 't', sample: 0, quota })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      return await (await fetch(new URL('/v1/leases', url), { method: 'POST', headers, body })).json()
    }
    expect(await lease({ processes: 31 })).toMatchObject({ error: { message: expect.stringContaining('at most 30') } })
    expect(await lease({ memoryBytes: 1e15 })).toMatchObject({ error: { message: expect.stringContaining('at most 17179869184') } })
    expect(await lease({ processes: 30 })).toMatchObject({ tier: 'simulated' })
  })

  it('says why it did not start', async () => {
    const busy = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => busy.once('listening', resolve))
    const { port } = busy.address() as { port: number }
    const { code, stderr } = await env('start', ['--port', String(port), '--tier', 'simulated'])
    busy.close()
    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`Port ${port} of 127\\.0\\.0\\.1 is in use`))
    expect(existsSync(connectionFile())).toBe(false)
    expect((await start(['--host', '0.0.0.0'])).stderr).toMatch(/insecure/)
    expect(await start(['--record', 'a', '--replay', 'b'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/^[^\n]*not both/) })
    expect(await start(['--max-quota', '{"memory": 1}'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/^[^\n]*memoryBytes/) })
    expect((await start(['--keys', 'gone.env'])).stderr).toMatch(/gone\.env cannot be read/)
    expect(await env('begin')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('start, status, token, stop, new-server, template'),
    })
  })
})
