import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunReport } from '@aworld-train/core'
import { pythonTrainers } from 'aworld-train'
import { startSkyrl } from '../../test/trainers/tinker/start-skyrl.ts'
import { type BenchRow, type BenchSuite, resultName, spreadOf } from '../suite.ts'
import { type Curve, drawCurves } from '../trainers/draw-curves.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const example = join(root, 'examples/periodic-table')
const environment = (name: string) => join(root, '.aworld-train/python', name)
const names: readonly string[] = ['local', ...pythonTrainers.map(({ name }) => name), 'tinker']

/**
 * The main example with each trainer, its curves in one picture: `npm run bench -- trainers [NAME or RUN…]`. A name trains; the folder of a
 * run that is there already is drawn as it is. Without arguments every trainer trains whose environment is there.
 */
export const trainers: BenchSuite = {
  async run(args) {
    const reports: RunReport[] = []
    const notes: string[] = []
    for (const arg of args.length > 0 ? args : names) {
      const outcome = names.includes(arg) ? await train(arg) : await readReport(resolve(arg))
      if (typeof outcome === 'string') notes.push(outcome)
      else reports.push(outcome)
      const line = typeof outcome === 'string' ? outcome : `${outcome.engine}: ${described(outcome)}`
      process.stdout.write(`${line}\n`)
    }
    if (reports.length === 0) return { rows: [], notes }
    const picture = `bench/results/${resultName('trainers', args)}.svg`
    await mkdir(join(root, 'bench/results'), { recursive: true })
    await writeFile(join(root, picture), drawCurves(reports.map(toCurve), 'Reward of the main example, by trainer'))
    return { rows: reports.flatMap(toRows), notes: [...notes, `${picture} has the curves.`] }
  },
}

/** The report of a training, or a sentence about why there is none. */
async function train(name: string): Promise<RunReport | string> {
  const variables: Record<string, string> = {}
  await using stack = new AsyncDisposableStack()
  if (name === 'tinker' && !process.env['TINKER_BASE_URL']) {
    if (!existsSync(environment('skyrl')))
      return 'tinker is left out: TINKER_BASE_URL names no service, and there is no SkyRL here; npm run test:trainers -- tinker installs it.'
    variables['TINKER_BASE_URL'] = stack.use(await startSkyrl(join(example, 'model'))).url
  } else if (pythonTrainers.some((trainer) => trainer.name === name)) {
    const python = join(environment(name), 'bin/python')
    if (!existsSync(python))
      return `${name} is left out: it has no Python in .aworld-train/python/${name}; npm run aworld-train -- setup ${name} makes it.`
    variables['AWORLD_TRAIN_PYTHON'] = python
  }
  const runPath = await mkdtemp(join(tmpdir(), `aworld-train-${name}-`))
  stack.defer(() => rm(runPath, { recursive: true, force: true }))
  const program = [join(root, 'packages/cli/src/main.ts'), 'train', example, '--engine', name, '--dashboard', 'off', '--run-path', runPath]
  const child = spawn(process.execPath, program, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...variables },
  })
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('exit', resolve))
  if (code !== 0) return `${name} is left out: its training ended with exit code ${code}, as said above.`
  const [run] = await readdir(runPath)
  return await readReport(join(runPath, run as string))
}

const readReport = async (run: string) => JSON.parse(await readFile(join(run, 'report.json'), 'utf8')) as RunReport

/** Some frameworks count updates: a batch of rollouts is a point of the curve that has a reward. */
const toCurve = ({ engine, curve, before, after }: RunReport): Curve => ({
  name: engine,
  rewards: curve.flatMap(({ reward }) => (Number.isFinite(reward) ? [reward] : [])),
  before: before?.reward ?? null,
  after: after?.reward ?? null,
})

function described(report: RunReport): string {
  const { rewards, before, after } = toCurve(report)
  const phases = Object.entries(report.times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(0)} s`)
  return `held out ${before?.toFixed(3)} to ${after?.toFixed(3)} in ${rewards.length} batches, ${(report.times.wallMs / 1000).toFixed(0)} s (${phases.join(', ')})`
}

function toRows({ engine, before, after, times, ledger }: RunReport): BenchRow[] {
  const row = (measure: string, unit: string, better: BenchRow['better'], value: number | undefined): BenchRow[] =>
    value === undefined ? [] : [{ measure: `${engine}: ${measure}`, unit, better, ours: spreadOf([value]), peers: {} }]
  return [
    ...row('held-out reward before (at most 0.3)', 'mean reward', 'lower', before?.reward),
    ...row('held-out reward after (at least 0.75)', 'mean reward', 'higher', after?.reward),
    ...row('wall time', 's', 'lower', times.wallMs / 1000),
    ...row('unexplained tokens', 'tokens', 'lower', ledger?.unexplained),
  ]
}
