import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaseAnswer, LeaseCopyAnswer, type Sandbox } from '@aworld-train/core'
import { type EnvironmentServer, openEnvironmentServer } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { noOutward, noParsers } from '../../packages/tools/src/testing/open-test-server.ts'
import { connect, openLease, percentile, proportionalMegabytes, request, send } from '../environment-clients.ts'
import { processTree } from '../gateway/process-tree.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { measureBrowsers } from './environment-browsers.ts'

/** Between leases that come one by one, as rollouts end and others begin: time in which the next workspaces are made ready. */
const pauseMs = 250
/** Servers of a round whose first lease is measured. */
const coldServers = 10
const command = 'terminal-server__execute_command'
const never = new AbortController().signal
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
      const copies: number[] = []
      for (let index = 0; index < 20; index++) {
        await sleep(pauseMs)
        const body = JSON.stringify({ version: 1, rollout: `copy-${round}-${index}`, attempt: 0 })
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
        ...(sandboxTier === 'bubblewrap' ? await measureBrowsers(Number(rounds)) : []),
      ],
      notes: [
        `tier ${sandboxTier}; clients and servers run in one process; a cold lease is the first of a server that was just opened, with nothing kept ready, and its connections are new; warm leases and resets come ${pauseMs} ms after the last; memory is proportional set size`,
      ],
    }
  },
}
