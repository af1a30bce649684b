import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import type { AgentsResult } from '../gateway/agents.ts'
import { type CellResult, measureCell } from '../gateway/measure-cell.ts'
import {
  gatewayCore,
  loadCore,
  type RunningGateway,
  type StartOptions,
  startHaproxy,
  startLitellm,
  startOurs,
  startPortkey,
  startRelay,
  startScript,
} from '../gateway/peers.ts'
import { residentMegabytes } from '../gateway/process-tree.ts'
import type { RolloutsOptions, RolloutsResult } from '../gateway/rollouts.ts'
import { type BenchRow, type BenchSuite, compare, type Spread, spreadOf } from '../suite.ts'

type Starter = (options: StartOptions) => Promise<RunningGateway>

/** Fewest answers of a valid measurement. */
const fewest = 30

interface Contestant {
  readonly start: Starter
  /** Whether it is so slow that it is measured only once, until it has answered a few waves of requests. */
  readonly slow?: boolean
}

const contestants: Readonly<Record<string, Contestant>> = {
  'pass-through': { start: (options) => startOurs({ ...options, mode: 'pass-through', sessions: options.connections }) },
  'token-in': { start: (options) => startOurs({ ...options, mode: 'token-in', sessions: options.connections }) },
  relay: { start: startRelay },
  haproxy: { start: startHaproxy },
  portkey: { start: startPortkey },
  litellm: { start: startLitellm, slow: true },
}
const peers = ['relay', 'haproxy', 'portkey', 'litellm']
/** Bounds are set at this many requests in flight, beside the relay. */
const boundConnections = 64
const bounded = ['pass-through', 'token-in', 'relay']

type Pick = (result: CellResult, round: number) => number

interface Cell {
  readonly bodyBytes: number
  readonly stream: boolean
  /** Requests in flight; the engine takes as many milliseconds, so that 1,000 requests a second are offered. */
  readonly connections: number
}

const cells: readonly Cell[] = [2048, 102_400].flatMap((bodyBytes) =>
  [false, true].flatMap((stream) => [64, 512].map((connections) => ({ bodyBytes, stream, connections }))),
)
const titleOf = ({ bodyBytes, stream, connections }: Cell) =>
  `${bodyBytes / 1024} KB ${stream ? 'stream' : 'JSON'}, ${connections} in flight`

/** Warm-up of each contestant before it is measured, because in a long run its code is compiled. */
const warmUpSeconds = 8

/** Measures a contestant; with `null` the engine alone, without a gateway. */
async function measure(cell: Cell, contestant: Contestant | null): Promise<CellResult> {
  const { connections, bodyBytes, stream } = cell
  await using upstream = await startScript<{ port: number }>('upstream.ts', [`--delay=${connections}`], loadCore)
  const upstreamPort = upstream.line.port
  const load = { bodyBytes, stream, connections, model: 'bench', warmUpSeconds, seconds: 3 }
  if (contestant === null)
    return await measureCell({ pid: upstream.pid, port: upstreamPort, paths: ['/v1/chat/completions'], headers: {} }, load)
  await using gateway = await contestant.start({ upstreamPort, connections })
  return await measureCell(gateway, contestant.slow ? { ...load, warmUpSeconds: 5, seconds: 20, requests: 2 * connections } : load)
}

async function measureCells(
  names: readonly string[],
  measured: readonly Cell[],
  rounds: number,
  rows: BenchRow[],
  notes: string[],
): Promise<void> {
  for (const cell of measured) {
    const results: Record<string, CellResult[]> = {}
    const failed = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      for (const name of ['direct', ...names]) {
        const contestant = contestants[name] ?? null
        if (failed.has(name) || (contestant?.slow && round > 0)) continue
        try {
          const result = await measure(cell, contestant)
          if (result.requests < fewest) throw new Error(`it answered ${result.requests} requests in ${result.seconds.toFixed(0)} s`)
          results[name] = [...(results[name] ?? []), result]
          if (result.errors > 0) notes.push(`${titleOf(cell)}: ${name} failed ${result.errors} of ${result.requests} requests.`)
        } catch (error) {
          failed.add(name)
          notes.push(`${titleOf(cell)}: ${name} was not measured: ${error instanceof Error ? error.message.slice(0, 200) : error}`)
        }
      }
    }
    const directAt = (round: number): { readonly p50: number; readonly p99: number } => results['direct']?.[round] ?? { p50: 0, p99: 0 }
    const spread = (name: string, pick: Pick): Spread | undefined => {
      const runs = results[name]
      return runs && runs.length > 0 ? spreadOf(runs.map(pick)) : undefined
    }
    const row = (measure: string, unit: string, ours: string, names: readonly string[], pick: Pick, atMost?: number) => {
      const spreadOfOurs = spread(ours, pick)
      if (!spreadOfOurs) return
      const compared = names.flatMap((name) => {
        const peer = spread(name, pick)
        return peer ? [[name, compare(spreadOfOurs, peer)] as const] : []
      })
      rows.push({
        measure: `${titleOf(cell)}: ${measure}`,
        unit,
        better: 'lower',
        ours: spreadOfOurs,
        peers: Object.fromEntries(compared),
        ...(atMost !== undefined && cell.connections === boundConnections && { bound: { atMost, of: 'relay' } }),
      })
    }
    row('pass-through, CPU', 'µs', 'pass-through', peers, ({ cpu }) => cpu, cell.bodyBytes < 10_000 ? 5 : 6)
    row('pass-through, event loop', 'µs', 'pass-through', ['relay'], ({ eventLoopCpu }) => eventLoopCpu, 3.5)
    row('token-in, CPU', 'µs', 'token-in', peers, ({ cpu }) => cpu)
    for (const mode of ['pass-through', 'token-in']) {
      row(`${mode}, p50 added`, 'ms', mode, peers, ({ p50 }, round) => p50 - directAt(round).p50)
      row(`${mode}, p99 added`, 'ms', mode, peers, ({ p99 }, round) => p99 - directAt(round).p99)
    }
  }
}

async function runRollouts(options: RolloutsOptions): Promise<RolloutsResult> {
  await using started = await startScript<RolloutsResult>('rollouts.ts', [JSON.stringify(options)])
  return started.line
}

/** Rollouts that a gateway serves before it is measured: that a run begins with code not compiled yet is felt once. */
const warmUpRollouts = 300

/** The same rollouts straight to the engine, through the bare relay and through the gateway, in turns. */
async function measureRollouts(count: number, mostDelayMs: number, rounds: number, rows: BenchRow[], notes: string[]): Promise<void> {
  const rampSeconds = count / 2000
  const through: RolloutsResult[] = []
  const straight: RolloutsResult[] = []
  const relayed: RolloutsResult[] = []
  const delays: number[] = []
  const warm = (target: { readonly port: number; readonly controlPort?: number }) =>
    runRollouts({ ...target, count: warmUpRollouts, rampSeconds: 1, model: 'bench' })
  for (let round = 0; round < rounds; round++) {
    await using upstream = await startScript<{ port: number }>('upstream.ts', [])
    const upstreamPort = upstream.line.port
    straight.push(await runRollouts({ port: upstreamPort, count, rampSeconds, model: 'bench' }))
    {
      await using relay = await startScript<{ port: number }>('relay.ts', [`http://127.0.0.1:${upstreamPort}`, String(count)])
      const { port } = relay.line
      await warm({ port })
      relayed.push(await runRollouts({ port, count, rampSeconds, model: 'bench' }))
    }
    await using gateway = await startOurs({ upstreamPort, connections: count, mode: 'pass-through', sessions: 0, pinned: false })
    const { port, controlPort } = gateway
    await warm({ port, controlPort })
    await control(controlPort, '/reset')
    through.push(await runRollouts({ port, controlPort, count, rampSeconds, model: 'bench' }))
    delays.push((await control(gateway.controlPort, '/stats')).eventLoopDelayP99)
  }
  const makespan = (results: readonly RolloutsResult[]) => spreadOf(results.map((result) => result.makespan))
  const { bound, turns } = through[0]!
  const ours = makespan(through)
  const title = `${count.toLocaleString('en')} rollouts`
  rows.push({
    measure: `${title}: makespan`,
    unit: 's',
    better: 'lower',
    ours,
    peers: {
      direct: compare(ours, makespan(straight)),
      relay: compare(ours, makespan(relayed)),
      bound: { ...compare(ours, { median: bound, min: bound, max: bound }) },
    },
  })
  rows.push({
    measure: `${title}: event-loop delay p99`,
    unit: 'ms',
    better: 'lower',
    ours: spreadOf(delays),
    peers: {},
    bound: { atMost: mostDelayMs },
  })
  for (const [name, results] of [
    ['gateway', through],
    ['relay', relayed],
    ['direct', straight],
  ] as const)
    notes.push(
      `${title}, ${turns} turns, ${name}: added ${results.map(({ addedP50, addedP99 }) => `p50 ${addedP50.toFixed(1)} p99 ${addedP99.toFixed(1)} ms`).join('; ')}; errors ${results.map(({ errors }) => errors).join(', ')}.`,
    )
}

/** Real agents with a tool; the bound is the slowest of them alone. */
async function measureAgents(count: number, rounds: number, rows: BenchRow[], notes: string[]): Promise<void> {
  const results: AgentsResult[] = []
  for (let round = 0; round < rounds; round++) {
    await using upstream = await startScript<{ port: number }>('upstream.ts', [])
    await using agents = await startScript<AgentsResult>('agents.ts', [`http://127.0.0.1:${upstream.line.port}`, String(count)])
    results.push(agents.line)
  }
  const ours = spreadOf(results.map(({ makespan }) => makespan))
  const { bound } = results[0]!
  rows.push({
    measure: `${count} agents: makespan`,
    unit: 's',
    better: 'lower',
    ours,
    peers: { bound: compare(ours, { median: bound, min: bound, max: bound }) },
  })
  notes.push(`${count} agents: ${results[0]!.turns} turns; not completed ${results.map(({ failed }) => failed).join(', ')}.`)
}

interface Statistics {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly eventLoopDelayP99: number
}

async function control(port: number, path: string): Promise<Statistics> {
  const { body } = await request(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: '{}' })
  return (await body.json()) as Statistics
}

/** Delay of the event loop with 1,500 requests of 2 KB in flight, 1,000 of which end each second. */
async function measureDelay(rounds: number, rows: BenchRow[]): Promise<void> {
  const connections = 1500
  const delays: number[] = []
  for (let round = 0; round < rounds; round++) {
    await using upstream = await startScript<{ port: number }>('upstream.ts', [`--delay=${connections}`], loadCore)
    await using gateway = await startOurs({ upstreamPort: upstream.line.port, connections, mode: 'pass-through', sessions: connections })
    const load = { bodyBytes: 2048, stream: false, connections, model: 'bench' }
    await measureCell(gateway, { ...load, warmUpSeconds: 4, seconds: 1 })
    await control(gateway.controlPort, '/reset')
    await measureCell(gateway, { ...load, warmUpSeconds: 0.1, seconds: 10 })
    delays.push((await control(gateway.controlPort, '/stats')).eventLoopDelayP99)
  }
  rows.push({ measure: '1,500 in flight: event-loop delay p99', unit: 'ms', better: 'lower', ours: spreadOf(delays), peers: {} })
}

/** A gateway whose sessions keep 20 turns each, and a load of 64 in flight. */
async function startSteady(upstreamPort: number, bodyBytes: number) {
  const connections = 64
  const gateway = await startOurs({ upstreamPort, connections, mode: 'pass-through', sessions: connections, kept: 20 })
  const load = { bodyBytes, stream: false, connections, model: 'bench', warmUpSeconds: 0.1, seconds: 300 }
  const serve = async (requests: number) => {
    const result = await measureCell(gateway, { ...load, requests })
    // The last answers are still being recorded.
    await sleep(1000)
    return result
  }
  return { ...gateway, serve }
}

/** Memory that is in use after 100,000 requests of 2 KB, beside that after the first 20,000. */
async function measureGrowth(rows: BenchRow[]): Promise<void> {
  await using upstream = await startScript<{ port: number }>('upstream.ts', [], loadCore)
  await using gateway = await startSteady(upstream.line.port, 2048)
  const megabytes = async () => {
    await control(gateway.controlPort, '/collect')
    const { heapUsed, external } = await control(gateway.controlPort, '/collect')
    return (heapUsed + external) / 1e6
  }
  await gateway.serve(20_000)
  const before = await megabytes()
  await gateway.serve(100_000)
  const growth = (await megabytes()) - before
  rows.push({ measure: '100,000 requests: growth of heap and buffers', unit: 'MB', better: 'lower', ours: spreadOf([growth]), peers: {} })
}

/** Memory of the process after 20,000 requests of 100 KB, beside that after the first 5,000: nobody asks for a collection. */
async function measureResident(rounds: number, rows: BenchRow[]): Promise<void> {
  const after: { readonly few: number; readonly many: number }[] = []
  for (let round = 0; round < rounds; round++) {
    await using upstream = await startScript<{ port: number }>('upstream.ts', [], loadCore)
    await using gateway = await startSteady(upstream.line.port, 102_400)
    await gateway.serve(5_000)
    const few = residentMegabytes(gateway.pid)
    await gateway.serve(15_000)
    after.push({ few, many: residentMegabytes(gateway.pid) })
  }
  const ours = spreadOf(after.map(({ many }) => many))
  rows.push({
    measure: '20,000 requests of 100 KB: memory of the process',
    unit: 'MB',
    better: 'lower',
    ours,
    peers: { 'after 5,000': compare(ours, spreadOf(after.map(({ few }) => few))) },
    bound: { atMost: 1.3, of: 'after 5,000' },
  })
}

/**
 * Our gateway beside a bare relay, haproxy, Portkey's gateway and LiteLLM's proxy, all before the same engine:
 * `npm run bench -- gateway [rounds] [cells] [rollouts] [agents] [memory]`; without parts, all of them. `bounds` is what has a bound:
 * cells, rollouts and memory beside the relay alone, which nothing has to be installed for.
 */
export const gateway: BenchSuite = {
  async run([roundsText = '3', ...parts]) {
    const rounds = Number(roundsText)
    const wants = (part: string) => parts.length === 0 || parts.includes(part)
    const rows: BenchRow[] = []
    const notes: string[] = [
      `${rounds} rounds in turns; the gateways run on core ${gatewayCore}, load and engine on core ${loadCore}; rollouts on both.`,
      'CPU is user and system time of the whole process tree for a request; ours includes the recorder and a run store in which every turn is durable.',
    ]
    const bounds = parts.includes('bounds')
    const boundCells = cells.filter(({ connections }) => connections === boundConnections)
    if (bounds) await measureCells(bounded, boundCells, rounds, rows, notes)
    else if (wants('cells')) await measureCells(Object.keys(contestants), cells, rounds, rows, notes)
    if (bounds || wants('rollouts')) {
      await measureRollouts(1500, 40, rounds, rows, notes)
      await measureRollouts(4096, 80, rounds, rows, notes)
    }
    if (wants('agents')) await measureAgents(300, rounds, rows, notes)
    if (bounds || wants('memory')) await measureResident(rounds, rows)
    if (wants('memory')) {
      await measureGrowth(rows)
      await measureDelay(rounds, rows)
    }
    return { rows, notes }
  },
}
