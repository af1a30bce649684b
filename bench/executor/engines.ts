import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import type { RunLoadResult } from './run-load.ts'
import { startLoad } from './start-load.ts'

const count = 2_000
const slots = 64
const rounds = 3

const engines = {
  'in this process': { workers: 0 },
  'four child processes': { workers: 4 },
  'without us': { plain: true },
} as const
type Engine = keyof typeof engines

/** Short rollouts a second, and the start until the first has ended, of each engine that runs agents. */
export const engineRates: BenchSuite = {
  async run(args) {
    const seed = Number(args[0] ?? 1)
    const load = { count, seed, scale: 0 }
    const names = Object.keys(engines) as Engine[]
    const results = new Map<Engine, RunLoadResult[]>(names.map((name) => [name, []]))
    for (let round = 0; round < rounds; round++) {
      for (const name of names) results.get(name)!.push(await startLoad({ load, slots, ...engines[name] }))
    }
    const rows = names.slice(0, -1).flatMap((name): BenchRow[] => {
      const row = (measure: string, unit: string, better: BenchRow['better'], read: (run: RunLoadResult) => number): BenchRow => {
        const [ours, plain] = [name, 'without us' as const].map((each) => spreadOf(results.get(each)!.map(read)))
        return { measure: `${name}: ${measure}`, unit, better, ours: ours!, peers: { 'without us': compare(ours!, plain!) } }
      }
      return [
        row('short rollouts', 'rollouts/s', 'higher', ({ seconds }) => count / seconds),
        row('start to the end of the first', 's', 'lower', ({ startSeconds }) => startSeconds),
        row('CPU of a rollout', 'ms', 'lower', ({ cpuSeconds }) => (cpuSeconds / count) * 1000),
      ]
    })
    return { rows, notes: [`${count} rollouts of one model call that is answered at once, ${slots} at once; CPU is without the engine's`] }
  },
}
