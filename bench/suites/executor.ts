import type { BenchSuite } from '../suite.ts'

/** Parts of the suite, each of which can be run by itself: `npm run bench -- executor d 7` with the seeds of the caller. */
const parts: Readonly<Record<string, () => Promise<BenchSuite>>> = {
  a: async () => (await import('../executor/seeds-table.ts')).seedsTable,
  b: async () => (await import('../executor/killed-worker.ts')).killedWorker,
  c: async () => (await import('../executor/engines.ts')).engineRates,
  d: async () => (await import('../executor/carry-over.ts')).carryOver,
  e: async () => (await import('../executor/time-to-reward.ts')).timeToReward,
  rollouts: async () => (await import('../executor/many-rollouts.ts')).manyRollouts,
  pods: async () => (await import('../executor/pods.ts')).podRates,
}

/** How rollouts are placed, carried over and trained: all parts, or those whose letters are named. */
export const executor: BenchSuite = {
  async run(args) {
    const seeds = args.filter((arg) => /^\d+$/.test(arg))
    const letters = args.filter((arg) => !/^\d+$/.test(arg))
    const unknown = letters.find((letter) => !parts[letter])
    if (unknown !== undefined) throw new Error(`There is no part "${unknown}"; choose of ${Object.keys(parts).join(', ')}.`)
    const results: Awaited<ReturnType<BenchSuite['run']>>[] = []
    for (const letter of letters.length > 0 ? letters : Object.keys(parts)) results.push(await (await parts[letter]!()).run(seeds))
    return { rows: results.flatMap(({ rows }) => rows), notes: results.flatMap(({ notes }) => notes) }
  },
}
