import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { nodeCpus, startRayCluster } from '../../test/executors/ray-cluster.ts'
import { sparkEnvironment } from '../../test/executors/spark-environment.ts'
import { startProcess, startScript } from '../gateway/peers.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import type { RunLoadResult } from './run-load.ts'
import { startLoad } from './start-load.ts'

/** Of each engine, so that they stand beside each other. */
export const [count, slots, workers] = [2_000, 64, 4] as const
const rounds = 3
const plainRay = fileURLToPath(new URL('plain-ray.py', import.meta.url))

/** What was measured of short rollouts; `count` where they were fewer than the 2,000 of the others. */
export type Rates = Pick<RunLoadResult, 'seconds' | 'startSeconds'> & { readonly cpuSeconds?: number | undefined; readonly count?: number }

/** Short rollouts a second, and the start until the first has ended, of each engine that runs agents, beside the same without us. */
export const engineRates: BenchSuite = {
  async run(args) {
    const load = { count, seed: Number(args[0] ?? 1), scale: 0 }
    const run = (options: object) => () => startLoad({ load, slots, ...options })
    const rows = await compareEngines(
      { 'in this process': run({}), 'four child processes': run({ workers }) },
      { 'without us': run({ plain: true }) },
    )
    const folder = await mkdtemp(join(tmpdir(), 'bench-'))
    const cluster = await startRayCluster(folder, 1)
    try {
      const { address, python } = cluster
      const executor = { engineName: 'ray', address, resources: { num_cpus: nodeCpus / workers }, options: { python } }
      // The CPU of actors is the cluster's, where nobody sees whose it is.
      const actors = async () => ({ ...(await run({ workers, executor })()), cpuSeconds: undefined })
      rows.push(
        ...(await compareEngines(
          { 'four actors of Ray': actors },
          { 'plain tasks of Ray': () => startPlainRay(python, cluster.gcsAddress) },
        )),
      )
    } finally {
      await cluster.close()
      await rm(folder, { recursive: true, force: true })
    }
    const spark = { engineName: 'spark', resources: { 'spark.ui.enabled': 'false' }, options: { python: await sparkEnvironment() } }
    rows.push(...(await compareEngines({ 'four partitions of Spark': run({ workers, executor: spark }) }, {})))
    return {
      rows,
      notes: [
        `${count} rollouts of one model call that is answered at once, ${slots} at once, plain tasks of Ray ${workers} at once; CPU is without the engine's, that of Spark with its driver; Ray's cluster runs before the start, Spark's driver starts with it`,
      ],
    }
  },
}

/** Runs engines and what they stand beside, in turns. */
export async function compareEngines(
  engines: Readonly<Record<string, () => Promise<Rates>>>,
  peers: Readonly<Record<string, () => Promise<Rates>>>,
): Promise<BenchRow[]> {
  const all = Object.entries({ ...engines, ...peers })
  const results = new Map<string, Rates[]>(all.map(([name]) => [name, []]))
  for (let round = 0; round < rounds; round++) for (const [name, run] of all) results.get(name)!.push(await run())
  return Object.keys(engines).flatMap((name): BenchRow[] => {
    const row = (measure: string, unit: string, better: BenchRow['better'], read: (run: Rates) => number | undefined): BenchRow[] => {
      const of = (each: string) => results.get(each)!.flatMap((run) => read(run) ?? [])
      if (of(name).length === 0) return []
      const ours = spreadOf(of(name))
      const besides = Object.keys(peers).filter((peer) => of(peer).length > 0)
      const compared = Object.fromEntries(besides.map((peer) => [peer, compare(ours, spreadOf(of(peer)))]))
      return [{ measure: `${name}: ${measure}`, unit, better, ours, peers: compared }]
    }
    return [
      ...row('short rollouts', 'rollouts/s', 'higher', ({ count: own = count, seconds }) => own / seconds),
      ...row('start to the end of the first', 's', 'lower', ({ startSeconds }) => startSeconds),
      ...row('CPU of a rollout', 'ms', 'lower', ({ count: own = count, cpuSeconds }) => cpuSeconds && (cpuSeconds / own) * 1000),
    ]
  })
}

async function startPlainRay(python: string, address: string): Promise<Rates> {
  await using upstream = await startScript<{ port: number }>('upstream.ts', [])
  const options = { address, upstreamPort: upstream.line.port, count, slots, workers, cpus: nodeCpus }
  await using started = startProcess(python, [plainRay, JSON.stringify(options)])
  const ended = once(started.child, 'exit').then(() => Promise.reject(new Error(`Plain tasks of Ray ended: ${started.errors()}`)))
  const [line] = await Promise.race([once(createInterface({ input: started.child.stdout! }), 'line'), ended])
  const { failed, ...rates } = JSON.parse(line as string) as Rates & { readonly failed: number }
  process.stdout.write(`${count} plain tasks of Ray: ${line}\n`)
  if (failed > 0) throw new Error(`${failed} of ${count} plain tasks of Ray did not end as planned.`)
  return rates
}
