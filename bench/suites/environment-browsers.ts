import { openOutward } from '@aworld-train/http'
import { browserFolders, openEnvironmentServer } from '@aworld-train/tools'
import { openSandbox } from '@aworld-train/tools/sandbox'
import type { Client } from '@modelcontextprotocol/client'
import { noParsers } from '../../packages/tools/src/testing/open-test-server.ts'
import { connect, openLease, proportionalMegabytes, request } from '../environment-clients.ts'
import { processTree } from '../gateway/process-tree.ts'
import { type BenchRow, spreadOf } from '../suite.ts'

/** Browsers that run at once, on a machine of 8 GB. */
const browsersAtOnce = 8
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

/** Time from a lease to the first snapshot of its browser, by itself and eight at once, and their memory. */
export async function measureBrowsers(rounds: number): Promise<BenchRow[]> {
  const [cold, warm, together, megabytes]: number[][] = [[], [], [], []]
  for (let round = 0; round < rounds; round++) {
    await using stack = new AsyncDisposableStack()
    const sandbox = stack.adopt(await openSandbox({ readable: browserFolders() }), (each) => each.close())
    const outward = stack.adopt(await openOutward({ services: [] }), (each) => each.close())
    const server = stack.adopt(await openEnvironmentServer({ sandbox, parsers: noParsers, outward }), (each) => each.close())
    const open = async () => {
      const started = performance.now()
      const { id, url, token } = await openLease(server)
      const client = await connect(url, token)
      await snapshot(client)
      const took = performance.now() - started
      const close = async () => {
        await client.close()
        await request(server, 'DELETE', `/v1/leases/${id}`)
      }
      return { took, close }
    }
    for (let index = 0; index < 4; index++) {
      const { took, close } = await open()
      ;(index === 0 ? cold : warm)!.push(took)
      await close()
    }
    const before = processTree(process.pid)
    const started = performance.now()
    const browsers = await Promise.all(Array.from({ length: browsersAtOnce }, open))
    together!.push(performance.now() - started)
    megabytes!.push(proportionalMegabytes(processTree(process.pid).filter((pid) => !before.includes(pid))))
    await Promise.all(browsers.map(({ close }) => close()))
  }
  const row = (measure: string, unit: string, values: readonly number[], atMost?: number): BenchRow => ({
    ...{ measure, unit, better: 'lower', ours: spreadOf(values), peers: {} },
    ...(atMost !== undefined && { bound: { atMost } }),
  })
  return [
    row('lease to first snapshot of a browser, first of a server', 'ms', cold!),
    row('lease to first snapshot of a browser', 'ms', warm!),
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
