import { setTimeout as sleep } from 'node:timers/promises'
import { openOutward } from '@aworld-train/http'
import { browserFolders, openEnvironmentServer } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { noParsers } from '../../packages/tools/src/testing/open-test-server.ts'
import { connect, openLease, proportionalMegabytes, request } from '../environment-clients.ts'
import { processTree } from '../gateway/process-tree.ts'
import { type BenchRow, compare, spreadOf } from '../suite.ts'

/** Browsers that run at once, on a machine of 8 GB. */
const browsersAtOnce = 8
/** Time that a model takes before it browses. */
const thinkMs = 2_000
/** Between leases that come one by one: time in which the next browser is made ready. */
const pauseMs = 5_000
const page = { url: 'data:text/html,<title>Page</title><h1>Page</h1>' }

async function snapshot(client: Client): Promise<void> {
  for (const [tool, input] of [
    ['browser_navigate', page],
    ['browser_snapshot', {}],
  ] as const) {
    const { content, isError } = await client.callTool({ name: `browser-server__${tool}`, arguments: input }, { timeout: 600_000 })
    if (isError) throw new Error(JSON.stringify(content))
  }
}

/** Opens leases of a new server that browse after a while. Their times are without that while. */
async function startServer(stack: AsyncDisposableStack, readyBrowsers: number) {
  const sandbox = stack.adopt(await openSandbox({ readable: browserFolders() }), (each) => each.close())
  const outward = stack.adopt(await openOutward({ services: [] }), (each) => each.close())
  const server = stack.adopt(await openEnvironmentServer({ sandbox, parsers: noParsers, outward, readyBrowsers }), (each) => each.close())
  const open = async (afterMs = 0) => {
    const started = performance.now()
    const { id, url, token } = await openLease(server)
    const client = await connect(url, token)
    await sleep(afterMs)
    await snapshot(client)
    const took = performance.now() - started - afterMs
    const close = async () => {
      await client.close()
      await request(server, 'DELETE', `/v1/leases/${id}`)
    }
    return { took, close }
  }
  /** Times of leases that come one after the other. */
  const time = async (count: number, afterMs?: number) => {
    const times: number[] = []
    for (let index = 0; index < count; index++) {
      const { took, close } = await open(afterMs)
      times.push(took)
      await close()
    }
    return times
  }
  return { open, time }
}

const megabytesBeside = (pids: readonly number[]) => proportionalMegabytes(processTree(process.pid).filter((pid) => !pids.includes(pid)))

/** Time from a lease to the first snapshot of its browser, by itself and eight at once, and their memory. */
export async function measureBrowsers(rounds: number): Promise<BenchRow[]> {
  const [cold, warm, thinking, ready, waiting, together, megabytes]: number[][] = [[], [], [], [], [], [], []]
  for (let round = 0; round < rounds; round++) {
    await using stack = new AsyncDisposableStack()
    const ours = processTree(process.pid)
    const keeping = await startServer(stack, 1)
    await keeping.time(2)
    for (let index = 0; index < 3; index++) {
      await sleep(pauseMs)
      waiting!.push(megabytesBeside(ours))
      ready!.push(...(await keeping.time(1)))
    }
    await stack.disposeAsync()

    await using next = new AsyncDisposableStack()
    const server = await startServer(next, 0)
    cold!.push(...(await server.time(1)))
    warm!.push(...(await server.time(3)))
    thinking!.push(...(await server.time(3, thinkMs)))
    const before = processTree(process.pid)
    const started = performance.now()
    const browsers = await Promise.all(Array.from({ length: browsersAtOnce }, () => server.open()))
    together!.push(performance.now() - started)
    megabytes!.push(megabytesBeside(before))
    await Promise.all(browsers.map(({ close }) => close()))
  }
  const row = (measure: string, unit: string, values: readonly number[], atMost?: number): BenchRow => ({
    ...{ measure, unit, better: 'lower', ours: spreadOf(values), peers: {} },
    ...(atMost !== undefined && { bound: { atMost } }),
  })
  const early = (measure: string, values: readonly number[], atMost: number): BenchRow => ({
    ...row(measure, 'ms', values),
    peers: { 'first of a server': compare(spreadOf(values), spreadOf(cold!)) },
    bound: { atMost, of: 'first of a server' },
  })
  return [
    row('lease to first snapshot of a browser, first of a server', 'ms', cold!),
    row('lease to first snapshot of a browser', 'ms', warm!),
    early(`lease to first snapshot of a browser, without ${thinkMs / 1_000} s in which a model reads`, thinking!, 0.5),
    early('lease to first snapshot of a browser that waited for it', ready!, 0.5),
    row('a browser that waits for a lease', 'MB', waiting!, 250),
    row(`${browsersAtOnce} leases to the first snapshots of their browsers`, 'ms', together!),
    row(
      'a browser with one page',
      'MB',
      megabytes!.map((sum) => sum / browsersAtOnce),
      500,
    ),
    row(`${browsersAtOnce} browsers at once`, 'MB', megabytes!, 6_000),
  ]
}
