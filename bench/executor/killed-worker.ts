import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { idealOf, makeLoad, sumOf } from './load.ts'
import { startLoad } from './start-load.ts'

const scale = 1 / 20
const count = 128
const workers = 4
const rounds = 3

/** One of four worker processes is killed at half: how long until all rollouts have ended, beside the shortest time with its work lost. */
export const killedWorker: BenchSuite = {
  async run(args) {
    const seed = Number(args[0] ?? 1)
    const load = { count, seed, scale }
    const planned = makeLoad(load)
    const killAfterSeconds = (idealOf(planned, count).makespanSeconds * scale) / 2
    const took: number[] = []
    const bounds: number[] = []
    const lostCounts: number[] = []
    for (let round = 0; round < rounds; round++) {
      const { seconds, lost } = await startLoad({ load, slots: count, workers, killAfterSeconds })
      if (lost.length === 0) throw new Error('The worker that was killed had nothing to do.')
      const again = new Set(lost)
      const killedAt = killAfterSeconds / scale
      // All begin at once, and what is lost begins anew where the worker is killed.
      const ends = planned.map((rollout) => rollout.seconds + (again.has(rollout.id) ? killedAt : 0))
      took.push(seconds / scale)
      bounds.push(Math.max(...ends, sumOf(ends) / count))
      lostCounts.push(lost.length)
    }
    const ours = spreadOf(took)
    const rows: BenchRow[] = [
      {
        ...{ measure: `one of ${workers} workers killed at half: makespan`, unit: 's at full scale', better: 'lower', ours },
        peers: { 'bound with its lost work': compare(ours, spreadOf(bounds)) },
        bound: { atMost: 1.1, of: 'bound with its lost work' },
      },
      { ...{ measure: 'rollouts that began anew', unit: 'rollouts', better: 'lower', ours: spreadOf(lostCounts) }, peers: {} },
    ]
    return {
      rows,
      notes: [
        `seed ${seed}; ${count} rollouts on ${workers} child processes of ${count / workers} slots; killed after half of the time that the longest rollout takes; scaled by 1:${1 / scale}`,
      ],
    }
  },
}
