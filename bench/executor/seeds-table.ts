import { getPriority } from 'node:os'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { idealOf, makeLoad } from './load.ts'
import type { RunLoadResult } from './run-load.ts'
import { startLoad } from './start-load.ts'

const scale = 1 / 20
const sequentialScale = 1 / 100
const rounds = 3
/** Loads whose ideals say how much of a speed-up is the draw of its seed. */
const drawnSeeds = 40
/** Rollouts, all at once, and the least part of the speed without us that is ours. */
const sizes = [
  { count: 32, atLeast: 0.95 },
  { count: 128, atLeast: 0.95 },
  { count: 512, atLeast: 0.85 },
]

/** How much sooner than one after another rollouts end whose engine and tools sleep: ours beside a plain loop, in turns. */
export const seedsTable: BenchSuite = {
  async run(args) {
    const seed = Number(args[0] ?? 1)
    const rows: BenchRow[] = []
    const notes = [
      `seed ${seed}; rollouts of 240 s in the mean and a turn every 30 s, two thirds for the engine and one third for tools, scaled by 1:${1 / scale}; agent, gateway, recorder and durable store in one process, the engine over HTTP in another, its tool over MCP in a third; priority of the processes ${getPriority()}`,
      `the ideal is that of this seed's load; of 32 rollouts over ${drawnSeeds} seeds it is ${idealRange(32)}`,
    ]
    for (const { count, atLeast } of sizes) {
      const load = { count, seed, scale }
      const { requestedSeconds, makespanSeconds } = idealOf(makeLoad(load), count)
      const ours: RunLoadResult[] = []
      const plain: RunLoadResult[] = []
      for (let round = 0; round < rounds; round++) {
        ours.push(await startLoad({ load, slots: count }))
        plain.push(await startLoad({ load, slots: count, plain: true }))
      }
      const [oursTook, plainTook] = [ours, plain].map((runs) => spreadOf(runs.map(({ seconds }) => seconds / scale))) as [Took, Took]
      const [oursGain, plainGain] = [ours, plain].map((runs) =>
        spreadOf(runs.map(({ seconds }) => (requestedSeconds * scale) / seconds)),
      ) as [Took, Took]
      const ideal = (value: number) => spreadOf([value])
      const title = `${count} rollouts`
      rows.push(
        {
          ...{ measure: `${title}: makespan`, unit: 's at full scale', better: 'lower', ours: oursTook },
          peers: { 'without us': compare(oursTook, plainTook), ideal: compare(oursTook, ideal(makespanSeconds)) },
          bound: { atMost: 1 / atLeast, of: 'without us' },
        },
        {
          ...{ measure: `${title}: speed-up`, unit: 'x', better: 'higher', ours: oursGain },
          peers: {
            'without us': compare(oursGain, plainGain),
            ideal: compare(oursGain, ideal(requestedSeconds / makespanSeconds)),
          },
        },
        row(`${title}: CPU`, 's', ours, plain, ({ cpuSeconds }) => cpuSeconds),
        row(`${title}: event-loop delay p99`, 'ms', ours, plain, ({ delayP99 }) => delayP99),
        row(`${title}: machine busy`, 'fraction', ours, plain, ({ machineBusy }) => machineBusy),
      )
    }
    const load = { count: 32, seed, scale: sequentialScale }
    const { requestedSeconds } = idealOf(makeLoad(load), 1)
    const took = spreadOf([(await startLoad({ load, slots: 1 })).seconds / sequentialScale])
    rows.push({
      ...{ measure: '32 rollouts one after another, 1:100', unit: 's at full scale', better: 'lower', ours: took },
      peers: { requested: compare(took, spreadOf([requestedSeconds])) },
    })
    return { rows, notes }
  },
}

/** The least and the largest ideal speed-up of `count` rollouts over the seeds, as a speed-up that somebody else measured has one of them. */
function idealRange(count: number): string {
  const ideals = Array.from({ length: drawnSeeds }, (_, index) => {
    const { requestedSeconds, makespanSeconds } = idealOf(makeLoad({ count, seed: index + 1, scale }), count)
    return requestedSeconds / makespanSeconds
  })
  return `${Math.min(...ideals).toFixed(1)} to ${Math.max(...ideals).toFixed(1)}`
}

type Took = ReturnType<typeof spreadOf>

function row(
  measure: string,
  unit: string,
  ours: readonly RunLoadResult[],
  plain: readonly RunLoadResult[],
  read: (run: RunLoadResult) => number,
): BenchRow {
  const [first, second] = [spreadOf(ours.map(read)), spreadOf(plain.map(read))]
  return { measure, unit, better: 'lower', ours: first, peers: { 'without us': compare(first, second) } }
}
