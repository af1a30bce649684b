import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { meanWithInterval, pairedDifference, type RunReport } from '@aworld-train/core'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { writePage } from '../swarm/page.ts'
import { digestOf, type Trained, trainOnce } from '../swarm/trained.ts'
import { variants } from '../swarm/variants.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * The swarm of `examples/source-readers` and what it is compared with: `npm run bench -- swarm [SEEDS] [VARIANT…]`. The report of each
 * training is kept in `.aworld-train/bench/swarm`, so that the same command goes on after an interruption. A change of the example or of
 * `bench/swarm` begins anew; after one of the packages, remove that folder.
 */
export const swarm: BenchSuite = {
  async run(args) {
    const seeds = args.find((arg) => /^\d+$/.test(arg))
    const names = args.filter((arg) => arg !== seeds)
    const unknown = names.find((name) => !variants[name])
    if (unknown !== undefined) throw new Error(`There is no variant "${unknown}"; choose among ${Object.keys(variants).join(', ')}.`)
    const folder = join(
      root,
      '.aworld-train/bench/swarm',
      await digestOf([join(root, 'examples/source-readers'), join(root, 'bench/swarm')]),
    )
    await mkdir(folder, { recursive: true })
    const trained: Trained[] = []
    for (const name of names.length > 0 ? names : Object.keys(variants)) {
      const variant = variants[name]!
      const reports: RunReport[] = []
      for (let seed = 1; seed <= Number(seeds ?? variant.seeds); seed++) {
        const kept = existsSync(join(folder, `${name}-${seed}.json`)) ? '  (kept)' : ''
        const report = await trainOnce(folder, name, variant, seed)
        reports.push(report)
        process.stdout.write(`${name.padEnd(8)}  seed ${String(seed).padStart(2)}  ${described(report)}${kept}\n`)
      }
      trained.push({ name, title: variant.title, reports })
    }
    const notes = notesOf(trained)
    if (args.length === 0) await writePage(root, trained, notes)
    return { rows: [...rowsOf(trained), ...claimsOf(trained)], notes }
  },
}

const rewardOf = (report: RunReport, result: 'before' | 'greedyBefore' | 'after' | 'greedyAfter') => report[result]?.reward ?? Number.NaN
const afterOf = (report: RunReport) => rewardOf(report, 'after')

function described(report: RunReport): string {
  const [before, greedyBefore, after, greedyAfter] = (['before', 'greedyBefore', 'after', 'greedyAfter'] as const).map((result) =>
    rewardOf(report, result).toFixed(3),
  )
  const { wallMs, cpuMs } = report.times
  return `before ${before} (greedy ${greedyBefore})  after ${after} (greedy ${greedyAfter})  ${(wallMs / 1000).toFixed(0)} s wall  ${(cpuMs / 1000).toFixed(0)} s CPU`
}

function malformedShare({ curve }: RunReport): number {
  const last = curve.slice(-5)
  const sum = (metric: string) => last.reduce((total, { metrics }) => total + (metrics[`role/reader/${metric}`] ?? Number.NaN), 0)
  return sum('malformedTurns') / sum('turns')
}

/** How far the median after is to be below that of both trained. */
const farBelow: Readonly<Record<string, number>> = { lead: 0.2, reader: 0.2, short: 0.3 }

/** What both trained are to reach, and how far others stay below them. */
function claimsOf(trained: readonly Trained[]): BenchRow[] {
  const both = trained.find(({ name }) => name === 'both')
  if (!both) return []
  const claim = (measure: string, unit: string, values: readonly number[], atMost: number): BenchRow => ({
    measure,
    unit,
    better: 'lower',
    ours: spreadOf(values),
    peers: {},
    bound: { atMost },
  })
  const after = both.reports.map(afterOf)
  const { median } = spreadOf(after)
  return [
    claim(
      `${both.title}: held-out reward after, short of 0.85`,
      'mean reward',
      after.map((reward) => 0.85 - reward),
      0,
    ),
    claim(`${both.title}: seeds that do not reach 0.8`, 'share', [after.filter((reward) => !(reward >= 0.8)).length / after.length], 0.1),
    ...trained.flatMap(({ name, title, reports }) =>
      farBelow[name] === undefined
        ? []
        : [
            claim(
              `${title}: held-out reward after, above the median of both trained`,
              'mean reward',
              reports.map((report) => afterOf(report) - median),
              -farBelow[name],
            ),
          ],
    ),
  ]
}

/** The first variant beside all others. */
function rowsOf([first, ...others]: readonly Trained[]): BenchRow[] {
  if (!first) return []
  const row = (
    measure: string,
    unit: string,
    better: BenchRow['better'],
    value: (report: RunReport) => number,
    atMost?: number,
  ): BenchRow => {
    const ours = spreadOf(first.reports.map(value))
    const measured = others.map(({ title, reports }) => [title, spreadOf(reports.map(value))] as const)
    const peers = measured.flatMap(([title, spread]) => (Number.isNaN(spread.median) ? [] : [[title, compare(ours, spread)] as const]))
    const bound = atMost === undefined ? {} : { bound: { atMost } }
    return { measure: `${first.title}: ${measure}`, unit, better, ours, peers: Object.fromEntries(peers), ...bound }
  }
  return [
    row('held-out reward before', 'mean reward', 'lower', (report) => rewardOf(report, 'before'), 0.2),
    row('greedy reward before', 'mean reward', 'lower', (report) => rewardOf(report, 'greedyBefore'), 0.2),
    row('held-out reward after', 'mean reward', 'higher', afterOf),
    row('greedy reward after', 'mean reward', 'higher', (report) => rewardOf(report, 'greedyAfter')),
    row('turns of readers with malformed calls, last five steps', 'share', 'lower', malformedShare),
    row('wall time', 's', 'lower', ({ times }) => times.wallMs / 1000, 180),
    row('CPU time', 's', 'lower', ({ times }) => times.cpuMs / 1000),
    row('unexplained tokens', 'tokens', 'lower', ({ ledger }) => ledger?.unexplained ?? Number.NaN, 0),
  ]
}

/** How many seeds reach 0.8, how far the others are below, and what the reader's own reward changes. */
function notesOf(trained: readonly Trained[]): string[] {
  const rewards = new Map(trained.map(({ name, reports }) => [name, reports.map(afterOf)]))
  const both = rewards.get('both')
  if (!both) return []
  const median = spreadOf(both).median
  const below = trained.flatMap(({ name, title, reports }) =>
    name === 'both' || name.startsWith('own-') ? [] : [`${title}: ${(median - spreadOf(reports.map(afterOf)).median).toFixed(3)} below`],
  )
  const own = [
    ['0', both],
    ['0.5', rewards.get('own-half')],
    ['1', rewards.get('own-full')],
  ] as const
  const count = Math.min(...own.map(([, values]) => values?.length ?? 0))
  const shares = own.map(([share, values]) => [share, values?.slice(0, count) ?? []] as const)
  const withoutOwn = shares[0]![1]
  return [
    `${both.filter((reward) => reward >= 0.8).length} of ${both.length} seeds reach 0.8 with both trained, at temperature 1.`,
    ...below.map((line) => `${line} the median of both trained.`),
    ...(count < 2
      ? []
      : shares.map(([share, values], index) => {
          const { mean, interval } = meanWithInterval(values)
          const difference = pairedDifference(values, withoutOwn)
          const compared = index === 0 ? '' : `, ${shownIn(difference.mean, difference.interval)} more than without`
          return `training.ownReward ${share} for the reader, seeds 1 to ${count}: ${shownIn(mean, interval)}${compared}.`
        })),
  ]
}

const shownIn = (mean: number, [low, high]: readonly [number, number]) => `${mean.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`
