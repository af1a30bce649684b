import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { LoadOptions, LoadResult } from './load.ts'
import { loadCore, type RunningGateway, startProcess } from './peers.ts'
import { cpuOf, residentMegabytes } from './process-tree.ts'

const loadScript = fileURLToPath(new URL('load.ts', import.meta.url))

/** The measures of one gateway under one kind of load. */
export interface CellResult extends LoadResult {
  /** Microseconds of CPU for a request: whole process tree, and its event loop alone. */
  readonly cpu: number
  readonly eventLoopCpu: number
  readonly residentMegabytes: number
}

/** Puts a gateway, or with `null` the engine itself, under load; the CPU is that of the measured time only. */
export async function measureCell(
  gateway: Pick<RunningGateway, 'pid' | 'port' | 'paths' | 'headers'>,
  load: Omit<LoadOptions, 'port' | 'paths' | 'headers'>,
): Promise<CellResult> {
  const { port, paths, headers, pid } = gateway
  const options: LoadOptions = { ...load, port, paths, headers }
  await using client = startProcess(process.execPath, [...process.execArgv, loadScript, JSON.stringify(options)], {}, loadCore)
  const lines = createInterface({ input: client.child.stdout! })[Symbol.asyncIterator]()
  await lines.next()
  const before = cpuOf(pid)
  const { value } = await lines.next()
  const after = cpuOf(pid)
  if (value === undefined) {
    await once(client.child, 'close')
    throw new Error(`The load ended without a result: ${client.errors()}`)
  }
  const result = JSON.parse(value) as LoadResult
  const each = (milliseconds: number) => (milliseconds * 1000) / result.requests
  return {
    ...result,
    cpu: each(after.tree - before.tree),
    eventLoopCpu: each(after.eventLoop - before.eventLoop),
    residentMegabytes: residentMegabytes(pid),
  }
}
