import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunReport } from '@aworld-train/core'
import { type BenchRow, type BenchSuite, spreadOf } from '../suite.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The main example over seeds: `npm run bench -- learning [first seed or list]`, ten seeds from 1 by default. */
export const learning: BenchSuite = {
  async run(args) {
    const seeds = args.length > 1 ? args.map(Number) : Array.from({ length: 10 }, (_, index) => Number(args[0] ?? 1) + index)
    const reports: RunReport[] = []
    for (const seed of seeds) {
      const report = await trainOnce(seed)
      reports.push(report)
      const { before, after, greedyAfter, times } = report
      process.stdout.write(
        `seed ${String(seed).padStart(4)}  before ${before?.reward.toFixed(3)}  after ${after?.reward.toFixed(3)}  greedy ${greedyAfter?.reward.toFixed(3)}  ${(times.wallMs / 1000).toFixed(1)} s wall  ${(times.cpuMs / 1000).toFixed(1)} s CPU  ${JSON.stringify(Object.fromEntries(Object.entries(after?.byKind ?? {}).map(([kind, { reward }]) => [kind, Number(reward.toFixed(3))])))}\n`,
      )
    }
    const row = (measure: string, unit: string, better: BenchRow['better'], value: (report: RunReport) => number): BenchRow => ({
      measure,
      unit,
      better,
      ours: spreadOf(reports.map(value)),
      peers: {},
    })
    const after = reports.map((report) => report.after?.reward ?? 0)
    return {
      rows: [
        row('held-out reward before (at most 0.3)', 'mean reward', 'lower', (report) => report.before?.reward ?? Number.NaN),
        row('held-out reward after', 'mean reward', 'higher', (report) => report.after?.reward ?? Number.NaN),
        row('greedy reward after', 'mean reward', 'higher', (report) => report.greedyAfter?.reward ?? Number.NaN),
        row('wall time', 's', 'lower', (report) => report.times.wallMs / 1000),
        row('CPU time', 's', 'lower', (report) => report.times.cpuMs / 1000),
        row('unexplained tokens', 'tokens', 'lower', (report) => report.ledger?.unexplained ?? Number.NaN),
        row('trained share of tokens in groups with variance', 'fraction', 'higher', (report) =>
          report.ledger ? report.ledger.withVariance.trained / report.ledger.withVariance.sampled : Number.NaN,
        ),
      ],
      notes: [`seeds ${seeds.join(', ')}: ${after.filter((reward) => reward >= 0.8).length} of ${after.length} reach 0.8`],
    }
  },
}

async function trainOnce(seed: number): Promise<RunReport> {
  const runPath = await mkdtemp(join(tmpdir(), 'aworld-train-learning-'))
  try {
    const child = spawn(
      process.execPath,
      [
        join(root, 'packages/cli/src/main.ts'),
        'train',
        join(root, 'examples/periodic-table'),
        '--seed',
        String(seed),
        '--run-path',
        runPath,
      ],
      {
        cwd: root,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
    const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('exit', resolve))
    if (code !== 0) throw new Error(`seed ${seed} ended with exit code ${code}`)
    const [run] = await readdir(runPath)
    return JSON.parse(await readFile(join(runPath, run as string, 'report.json'), 'utf8')) as RunReport
  } finally {
    await rm(runPath, { recursive: true, force: true })
  }
}
