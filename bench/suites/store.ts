import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { openRunStore, type RunReader, readEvents, readRun } from '@aworld-train/store'
import { episodeOf, runRequest, temporaryFolder, turnChain } from '../../packages/store/src/testing/run-fixtures.ts'
import { type BenchRow, type BenchSuite, spreadOf } from '../suite.ts'

const defaultRollouts = 100_000
const events = 1_000_000
const groupSize = 8
/** Rollouts of a step. */
const stepSize = 128
const repetitions = 15

/** How long reads of a long run take: `npm run bench -- store [rollouts]`, 4,000 and 100,000 by default. Every time has a newly opened reader. */
export const store: BenchSuite = {
  async run(args) {
    const rows: BenchRow[] = []
    const notes: string[] = []
    await using folder = await temporaryFolder()
    for (const rollouts of [4_000, Number(args[0] ?? defaultRollouts)]) {
      const path = join(folder.path, `${rollouts}`)
      const madeInMs = await makeRun(path, rollouts)
      const { size } = await stat(join(path, 'run.db'))
      notes.push(`${rollouts} rollouts of three turns: ${(madeInMs / 1000).toFixed(1)} s to write, ${Math.round(size / 1e6)} MB of run.db`)
      const middle = Math.floor(rollouts / stepSize / 2)
      const reads: readonly [string, (run: RunReader) => unknown][] = [
        ['a group and its episodes', (run) => run.rolloutRows({ group: `group-${middle}` }).rows.map(({ key }) => run.episode(key))],
        ['the first page', (run) => run.rolloutRows()],
        ['a step', (run) => run.rolloutRows({ step: middle })],
        ['a filter with a page of results', (run) => run.rolloutRows({ kind: 'hard', maxReward: 0 })],
        ['a filter that nothing passes', (run) => run.rolloutRows({ split: 'train', kind: 'hard', minReward: 2 })],
        ['what finished last', (run) => run.rolloutRows({ finishedAfter: rollouts - 10 })],
        ['an episode', (run) => run.episode(`${rollouts - 1}`)],
        ['totals of all results', (run) => run.finishedTotals(0)],
      ]
      for (const [name, read] of reads) {
        const bound = name.startsWith('a group') ? 10 : 100
        rows.push(rowOf(`${name}, of ${rollouts} rollouts`, bound, await timesOf(() => readOnce(path, read))))
      }
    }
    const last = await writeEvents(folder.path)
    rows.push(rowOf(`the last events, of ${events}`, 10, await timesOf(() => readEvents(folder.path, last))))
    return { rows, notes }
  },
}

function readOnce(path: string, read: (run: RunReader) => unknown): void {
  const run = readRun(path)
  try {
    read(run)
  } finally {
    run.close()
  }
}

async function timesOf(read: () => unknown): Promise<number[]> {
  const times: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const startedAt = performance.now()
    await read()
    times.push(performance.now() - startedAt)
  }
  return times
}

const rowOf = (measure: string, atMost: number, times: readonly number[]): BenchRow => ({
  ...{ measure, unit: 'ms', better: 'lower', ours: spreadOf(times), peers: {}, bound: { atMost } },
})

/** Writes a run; resolves to the milliseconds that this took. */
async function makeRun(path: string, rollouts: number): Promise<number> {
  const startedAt = performance.now()
  const run = await openRunStore({ path })
  const atOnce = 2_000
  for (let first = 0; first < rollouts; first += atOnce) {
    await Promise.all(
      Array.from({ length: Math.min(atOnce, rollouts - first) }, async (_, offset) => {
        const index = first + offset
        const request = runRequest(`${index}`, {
          group: `group-${Math.floor(index / groupSize)}`,
          sample: index % groupSize,
          step: Math.floor(index / stepSize),
          split: index % 4 === 0 ? 'test' : 'train',
          kind: index % 3 === 0 ? 'hard' : 'easy',
        })
        await run.begin(request)
        await run.finish(episodeOf(request, 0, turnChain(0, 3, index), { reward: index % 2 }))
      }),
    )
  }
  await run.close()
  return performance.now() - startedAt
}

/** Writes a log of events; resolves to the offset before the last hundred. */
async function writeEvents(path: string): Promise<number> {
  const line = `${JSON.stringify({ type: 'rollout-start', at: 1_795_427_150_392, rollout: 'train/20/3/1', attempt: 0, split: 'train' })}\n`
  const block = line.repeat(1_000)
  await pipeline(Readable.from(Array.from({ length: events / 1_000 }, () => block)), createWriteStream(join(path, 'events.jsonl')))
  return (events - 100) * line.length
}
