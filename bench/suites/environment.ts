import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeaseAnswer, LeaseCopyAnswer, type Outward, type ParserJail, type Sandbox } from '@aworld-train/core'
import { type EnvironmentServer, openEnvironmentServer } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { request as undiciRequest } from 'undici'
import { z } from 'zod'
import { processTree } from '../gateway/process-tree.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'

/** Between leases that come one by one, as rollouts end and others begin: time in which the next workspaces are made ready. */
const pauseMs = 250
/** Servers of a round whose first lease is measured. */
const coldServers = 10
const command = 'terminal-server__execute_command'
const never = new AbortController().signal
/** A shell that commands do not leave files, network or parsers for. */
const noOutward: Outward = {
  fetch: () => Promise.reject(new Error('not measured')),
  service: () => Promise.reject(new Error('not measured')),
  relay: () => ({ check: () => {}, send: () => Promise.reject(new Error('not measured')) }),
  hasService: () => false,
}
const parse = () => Promise.reject(new Error('not measured'))
const noParsers: ParserJail = { notices: [], parse, parseNative: parse, close: async () => {} }

/** Milliseconds that each of `count` runs of `work` takes, one after the other. */
async function time(count: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const started = performance.now()
    await work(index)
    times.push(performance.now() - started)
  }
  return times
}

const percentile = (values: readonly number[], part: number) => [...values].sort((a, b) => a - b)[Math.floor(part * (values.length - 1))]!

/** Sends as the client of `@aworld-train/environment` does: `fetch` would copy a body of 10 MB before it sends it. */
async function send(url: URL, method: string, headers: Record<string, string>, body?: string | Buffer): Promise<string> {
  const response = await undiciRequest(url, { method: method as 'PUT', headers, ...(body !== undefined && { body }) })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${method} ${url} answered ${response.statusCode}: ${text}`)
  return text
}

const request = (server: EnvironmentServer, method: string, path: string, body?: string | Buffer): Promise<string> =>
  send(new URL(path, server.url), method, { authorization: `Bearer ${server.connectionToken}`, 'content-type': 'application/json' }, body)

async function connect(url: string, token?: string): Promise<Client> {
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  return client
}

let rollouts = 0
async function openLease(server: EnvironmentServer): Promise<LeaseAnswer> {
  const body = JSON.stringify({ version: 1, rollout: `bench-${rollouts++}`, attempt: 0, task: 'bench', sample: 0 })
  return LeaseAnswer.parse(JSON.parse(await request(server, 'POST', '/v1/leases', body)))
}
const execute = (client: Client, text: string) => client.callTool({ name: command, arguments: { command: text } })

/** A server of the plain SDK with one tool, as its documentation shows. */
async function startPlainServer(): Promise<{ readonly url: string; close(): void }> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'plain', version: '1' })
    server.registerTool(
      command,
      { description: 'Answers.', inputSchema: z.object({ command: z.string() }) },
      async ({ command: text }) => ({
        content: [{ type: 'text', text }],
      }),
    )
    return server
  })
  const http = createServer(toNodeHandler(handler)).listen(0, '127.0.0.1')
  await new Promise((resolve) => http.once('listening', resolve))
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, close: () => http.close() }
}

/** A server that throws away what it is sent: what the transfer of a file takes by itself. */
async function startSink(): Promise<{ readonly url: URL; close(): void }> {
  const http = createServer((incoming, response) => incoming.resume().once('end', () => response.writeHead(204).end()))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return { url: new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`), close: () => http.close() }
}

const spawned = () => new Promise((resolve, reject) => spawn('/bin/true', { stdio: 'ignore' }).once('error', reject).once('close', resolve))

/** Memory of a process that no other shares with it, and its part of what others share, in megabytes. */
function proportionalMegabytes(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
    } catch {
      return 0
    }
  })
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024
}

/**
 * Leases, commands and shells of the environment, beside a server of the plain SDK and a plain spawn:
 * `npm run bench -- environment [rounds] [tier]`, three rounds in the tier that this machine runs by default.
 */
export const environment: BenchSuite = {
  async run([rounds = '3', tier = 'auto']) {
    const measured: Record<string, number[][]> = {}
    const p99: Record<string, number[]> = {}
    const keep = (name: string, times: number[]) => {
      measured[name] = [...(measured[name] ?? []), times]
      p99[name] = [...(p99[name] ?? []), percentile(times, 0.99)]
    }
    let sandboxTier = ''
    const megabytes: number[] = []
    const start = async (stack: AsyncDisposableStack) => {
      const sandbox: Sandbox = stack.adopt(await openSandbox({ tier: tier as 'auto' }), (each) => each.close())
      const options = { sandbox, parsers: noParsers, outward: noOutward, maxLeases: 512 }
      return { sandbox, server: stack.adopt(await openEnvironmentServer(options), (each) => each.close()) }
    }
    const toFirstCommand = async (server: EnvironmentServer) => {
      const started = performance.now()
      const lease = await openLease(server)
      const copies: number[] = []
      for (let index = 0; index < 20; index++) {
        await sleep(pauseMs)
        const body = JSON.stringify({ version: 1, rollout: `bench-${rollouts++}`, attempt: 0 })
        let copy: LeaseAnswer | undefined
        copies.push(
          ...(await time(1, async () => {
            copy = LeaseCopyAnswer.parse(JSON.parse(await request(server, 'POST', `/v1/leases/${lease.id}/copies`, body)))
          })),
        )
        await request(server, 'DELETE', `/v1/leases/${copy!.id}`)
      }
      keep('copy of 10 MB', copies)

      const client = await connect(lease.url, lease.token)
      await execute(client, 'true')
      const took = performance.now() - started
      await client.close()
      await request(server, 'DELETE', `/v1/leases/${lease.id}`)
      return took
    }
    for (let round = 0; round < Number(rounds); round++) {
      const cold: number[] = []
      for (let index = 0; index <= coldServers; index++) {
        await using stack = new AsyncDisposableStack()
        const { server } = await start(stack)
        await sleep(pauseMs)
        cold.push(await toFirstCommand(server))
      }
      // Before the first, this process has compiled neither the client nor the server.
      keep('lease to first command, cold', cold.slice(1))

      await using stack = new AsyncDisposableStack()
      const { sandbox, server } = await start(stack)
      sandboxTier = sandbox.tier
      const plain = stack.adopt(await startPlainServer(), (each) => each.close())

      const warm: number[] = []
      for (let index = 0; index < 25; index++) {
        await sleep(pauseMs)
        warm.push(await toFirstCommand(server))
      }
      keep('lease to first command, warm', warm.slice(5))
      keep('lease, first command and end, without a pause', await time(20, () => toFirstCommand(server)))

      const file = Buffer.alloc(10_000_000, 'x')
      let lease = await openLease(server)
      const sink = stack.adopt(await startSink(), (each) => each.close())
      const resets: number[] = []
      const transfers: number[] = []
      for (let index = 0; index < 20; index++) {
        await sleep(pauseMs)
        const [took] = await time(1, async () => {
          await request(server, 'DELETE', `/v1/leases/${lease.id}`)
          lease = await openLease(server)
          await request(server, 'PUT', `/v1/leases/${lease.id}/files/data.bin`, file)
        })
        resets.push(took!)
        transfers.push(...(await time(1, () => send(sink.url, 'PUT', {}, file))))
      }
      keep('reset with 10 MB', resets)
      keep('10 MB sent to a server that throws them away', transfers)

      const client = await connect(lease.url, lease.token)
      const peer = await connect(plain.url)
      const calls: number[] = []
      const plainCalls: number[] = []
      for (let index = 0; index < 250; index++) {
        calls.push(...(await time(1, () => execute(client, 'true'))))
        plainCalls.push(...(await time(1, () => execute(peer, 'true'))))
      }
      keep('command in an open shell', calls.slice(50))
      keep('call of a plain server', plainCalls.slice(50))
      await Promise.all([client.close(), peer.close()])

      const workspace = await sandbox.workspace({}, never)
      await time(5, () => workspace.run({ command: ['true'], timeoutMs: 10_000 }, never))
      keep('a program in the jail', await time(40, () => workspace.run({ command: ['true'], timeoutMs: 10_000 }, never)))
      await time(5, spawned)
      keep('a plain spawn', await time(40, spawned))
      await workspace.close()

      const before = processTree(process.pid)
      const ownMegabytes = proportionalMegabytes([process.pid])
      const leases = await Promise.all(Array.from({ length: 256 }, () => openLease(server)))
      await Promise.all(
        leases.map(async ({ url, token }) => {
          const each = await connect(url, token)
          await execute(each, 'true')
          await each.close()
        }),
      )
      const pids = processTree(process.pid).filter((pid) => !before.includes(pid))
      megabytes.push((proportionalMegabytes(pids) + Math.max(0, proportionalMegabytes([process.pid]) - ownMegabytes)) / leases.length)
    }

    const medians = (name: string) => spreadOf((measured[name] ?? []).map((times) => percentile(times, 0.5)))
    const rowsOf = (name: string, bound?: BenchRow['bound'], peer?: string): BenchRow[] => {
      const [ours, late] = [medians(name), spreadOf(p99[name] ?? [])]
      const peers = peer === undefined ? {} : { [peer]: compare(ours, medians(peer)) }
      const row = { measure: name, unit: 'ms', better: 'lower', ours, peers, ...(bound && { bound }) } as const
      return [row, { measure: `${name}, p99`, unit: 'ms', better: 'lower', ours: late, peers: {} }]
    }
    const inJail = (measured['a program in the jail'] ?? []).map(
      (times, index) => percentile(times, 0.5) - percentile(measured['a plain spawn']![index]!, 0.5),
    )
    return {
      rows: [
        ...rowsOf('lease to first command, cold', { atMost: 40 }),
        ...rowsOf('lease to first command, warm', { atMost: 10 }),
        ...rowsOf('lease, first command and end, without a pause'),
        ...rowsOf('reset with 10 MB', { atMost: 30 }, '10 MB sent to a server that throws them away'),
        ...rowsOf('copy of 10 MB', { atMost: 40 }),
        ...rowsOf('command in an open shell', { atMost: 2, of: 'call of a plain server' }, 'call of a plain server'),
        {
          measure: 'a program in the jail, above a plain spawn',
          unit: 'ms',
          better: 'lower',
          ours: spreadOf(inJail),
          peers: {},
          bound: { atMost: 15 },
        },
        {
          measure: '256 leases with shells, each',
          unit: 'MB',
          better: 'lower',
          ours: spreadOf(megabytes),
          peers: {},
          bound: { atMost: 2 },
        },
      ],
      notes: [
        `tier ${sandboxTier}; clients and servers run in one process; a cold lease is the first of a server that was just opened, with nothing kept ready, and its connections are new; warm leases and resets come ${pauseMs} ms after the last; memory is proportional set size`,
      ],
    }
  },
}
