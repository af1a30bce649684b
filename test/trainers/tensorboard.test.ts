// @module-tag quick
import { execFile, spawn } from 'node:child_process'
import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { RunEvent, RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { pythonEnvironment } from '../support/python-environment.ts'
import { parseEvents, runCli } from '../support/run-cli.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { makeProject, openTrainer, type TinyProject, taskLines } from '../support/tiny-project.ts'

type Scalars = Readonly<Record<string, readonly (readonly [step: number, value: number])[]>>

const here = (file: string) => fileURLToPath(new URL(`tensorboard/${file}`, import.meta.url))
const steps = 5
let python: string
let folder: string
let model: string

beforeAll(async () => {
  python = await pythonEnvironment({ name: 'tensorboard', requirements: here('requirements.txt') })
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-tensorboard-'))
  model = await makeTinyModel(join(folder, 'model'))
}, 300_000)

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

const readScalars = async (directory: string): Promise<Scalars> =>
  JSON.parse((await promisify(execFile)(python, [here('read_scalars.py'), directory])).stdout)

/** A project of five steps with a test set and a validation set. */
const makeLoggingProject = (training: object = {}): Promise<TinyProject> =>
  makeProject(folder, model, {
    definition: { testDataset: './test.jsonl', validationDataset: './test.jsonl' },
    config: {
      logging: ['tensorboard'],
      projectName: 'parity',
      experimentName: 'tiny',
      training: { steps, evaluateEvery: 2, ...training },
      evaluation: { greedy: true },
    },
    files: { 'test.jsonl': `${taskLines(4, 100)}\n` },
  })

const curvesOf = (run: string) => join(run, 'tensorboard_log', 'parity', 'tiny')

/** What TensorBoard is to show of a run, from its events. */
function expectedScalars(events: readonly RunEvent[]): Record<string, [number, number][]> {
  const curves = { before: 'test', after: 'test', 'greedy-before': 'test-greedy', 'greedy-after': 'test-greedy' } as Record<string, string>
  const scalars: Record<string, [number, number][]> = {}
  const add = (curve: string, step: number, metrics: Readonly<Record<string, number>>) => {
    for (const [name, value] of Object.entries(metrics)) {
      const tag = `${curve}/${name}`
      scalars[tag] = [...(scalars[tag] ?? []), [step, Math.fround(value)]]
    }
  }
  for (const event of events) {
    if (event.type === 'step-end') add('train', event.step, event.metrics)
    if (event.type === 'evaluation-end') add(curves[event.name] ?? 'validation', event.step, event.metrics)
  }
  return scalars
}

const stepsOf = (scalars: Scalars, tag: string) => scalars[tag]?.map(([step]) => step)

it('shows every number of a run, while it goes on and afterwards', async () => {
  const project = await makeLoggingProject()
  const events: RunEvent[] = []
  const live: Promise<Scalars>[] = []
  const trainer = await openTrainer(project, {
    async onEvent(event) {
      events.push(event)
      if (event.type === 'step-end') live.push(readScalars(curvesOf((await project.runs())[0]!)))
    },
  })
  const report = await trainer.train()
  const curves = curvesOf(report.path)

  const whole = await readScalars(curves)
  expect(whole).toEqual(expectedScalars(events))
  expect(whole['train/rewardMean']).toEqual(report.curve.map(({ step, reward }) => [step, Math.fround(reward)]))
  expect(whole['test/reward']).toEqual([report.before, report.after].map((result) => [result!.step, Math.fround(result!.reward)]))
  expect(stepsOf(whole, 'validation/reward')).toEqual([2, 4, steps])
  expect(stepsOf(whole, 'test-greedy/reward')).toEqual([0, steps])
  const seen = await Promise.all(live)
  expect(seen).toHaveLength(steps)
  // A training goes on while TensorBoard reads, so it may read more.
  for (const [index, scalars] of seen.entries()) expect(stepsOf(scalars, 'train/rewardMean')?.slice(0, index + 1)).toHaveLength(index + 1)
  const [start] = events.filter((event) => event.type === 'run-start')
  expect(start?.details['tensorboard']).toMatch(/^tensorboard --logdir .*tensorboard_log\/parity\/tiny$/)
})

it('is served by TensorBoard itself', async () => {
  const project = await makeLoggingProject({ steps: 2 })
  const report = await (await openTrainer(project)).train()
  const server = spawn(python, ['-m', 'tensorboard.main', '--logdir', project.runPath, '--port', '0', '--host', '127.0.0.1'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void server.kill())
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer) => {
      text += chunk
      const found = /(http:\S+?)\/? \(Press/.exec(text)?.[1]
      if (found) resolve(found)
    }
    server.stdout.on('data', read)
    server.stderr.on('data', read)
    server.on('exit', () => reject(new Error(text)))
  })
  const run = curvesOf(report.path).slice(dirname(report.path).length + 1)
  const query = new URLSearchParams({ run, tag: 'train/rewardMean' })
  let values: [wallTime: number, step: number, value: number][] = []
  while (values.length < 2) {
    await sleep(100)
    const response = await fetch(`${url}/data/plugin/scalars/scalars?${query}`)
    if (response.ok) values = (await response.json()) as typeof values
  }
  expect(values.map(([, step, value]) => [step, value])).toEqual(report.curve.map(({ step, reward }) => [step, Math.fround(reward)]))
  const { wallMs } = report.times
  for (const [wallTime] of values) expect(Date.now() / 1_000 - wallTime).toBeLessThan(wallMs / 1_000 + 60)
})

it('goes on in the same curves after kill -9 and a torn record, without a step missing or twice', async () => {
  const project = await makeLoggingProject()
  const events: RunEvent[] = []
  for (const [index, last] of ['"evaluation-end"', '"step-end"', '"step-end"', 'nothing'].entries()) {
    const { code, stdout } = await runCli(['train', project.folder, '--json'], {
      onLine: (line, child) => void (line.includes(last) && child.kill('SIGKILL')),
    })
    events.push(...parseEvents(stdout))
    expect(code).toBe(last === 'nothing' ? 0 : null)
    const curves = curvesOf((await project.runs())[0]!)
    const names = await readdir(curves)
    expect(names).toHaveLength(1)
    if (last === 'nothing') break
    await readScalars(curves)
    // A record that the killed process had begun: its header, and less data than that says.
    const file = join(curves, names[0]!)
    await appendFile(file, (await readFile(file)).subarray(0, 20 + index))
    await readScalars(curves)
  }
  const [run] = await project.runs()
  const report = JSON.parse(await readFile(join(run!, 'report.json'), 'utf8')) as RunReport
  const whole = await readScalars(curvesOf(run!))
  const all = Array.from({ length: steps }, (_, index) => index + 1)
  for (const tag of Object.keys(whole).filter((name) => name.startsWith('train/'))) expect([tag, stepsOf(whole, tag)]).toEqual([tag, all])
  expect(whole['train/rewardMean']).toEqual(report.curve.map(({ step, reward }) => [step, Math.fround(reward)]))
  expect(whole['test/reward']).toEqual([report.before, report.after].map((result) => [result!.step, Math.fround(result!.reward)]))
  expect(stepsOf(whole, 'validation/reward')).toEqual([2, 4, steps])
})

it('has the steps from before it was asked for', async () => {
  const project = await makeLoggingProject()
  const definition = (await import(join(project.folder, 'aworld-train.config.ts'))).default as { config: object }
  const stopping = new AbortController()
  const silent = await openTrainer(project, {
    config: { ...definition.config, logging: [] },
    onEvent: (event) => void (event.type === 'step-end' && event.step === 2 && stopping.abort()),
  })
  await silent.train(stopping.signal).catch(() => {})
  const report = await (await openTrainer(project)).train()
  const whole = await readScalars(curvesOf(report.path))
  expect(whole['train/rewardMean']).toEqual(report.curve.map(({ step, reward }) => [step, Math.fround(reward)]))
  expect(await project.runs()).toEqual([report.path])
})
