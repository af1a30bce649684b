import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MetricsLine } from '@aworld-train/core'
import { afterEach, expect, it } from 'vitest'
import { type LaunchTrainerOptions, launchTrainer, type TrainerProcess } from '../../shared/process/launch-trainer.ts'
import { bridgeDirectory } from '../../shared/python-package.ts'
import { verlCommand } from './verl-command.ts'
import { createConsoleReader } from './verl-failures.ts'

const script = join(import.meta.dirname, 'testing', 'fake-verl.py')
const directories: string[] = []
const started: TrainerProcess[] = []

afterEach(async () => {
  for (const each of started.splice(0)) await each.stop()
  for (const each of directories.splice(0)) rmSync(each, { recursive: true, force: true })
})

function prepare(steps: readonly string[], options: Partial<LaunchTrainerOptions> & Partial<Parameters<typeof startOf>[1]> = {}) {
  const path = mkdtempSync(join(tmpdir(), 'awt-'))
  directories.push(path)
  const lines: string[] = []
  const metrics: MetricsLine[] = []
  const launch = async () => {
    const verl = await launchTrainer({
      ...startOf(path, { environment: {}, inherited: process.env, ...options }, ['python3', script, ...steps]),
      python: 'python3',
      onLine: (line) => lines.push(line),
      onMetrics: (line) => metrics.push(line),
      deadlines: { interruptMs: 300, terminateMs: 300, graceMs: 100 },
      ...options,
    })
    started.push(verl)
    return verl
  }
  const waitForLine = async (pattern: RegExp) => {
    await expect.poll(() => lines.some((line) => pattern.test(line)), { interval: 20 }).toBe(true)
    return lines.map((line) => pattern.exec(line)).find((match) => match !== null) as RegExpExecArray
  }
  return { path, lines, metrics, launch, waitForLine }
}

interface Variables {
  readonly environment: Readonly<Record<string, string>>
  readonly inherited: Readonly<Record<string, string | undefined>>
}

/** A start of verl that runs another program. */
function startOf(path: string, { environment, inherited }: Variables, command: readonly string[]) {
  const bridge = {
    run: 'test',
    incarnation: randomUUID(),
    path,
    channelUrl: 'ws://127.0.0.1:1/v1/channel',
    tokenFile: join(path, 'token'),
    metricsFile: join(path, 'metrics', 'test.jsonl'),
    bridgeDirectory,
  }
  const planned = verlCommand({ overrides: [], environment }, { python: 'python3', bridge, inherited })
  const temporary = join(path, 'ray')
  return { trainer: 'verl', bridge, console: createConsoleReader(), command: { ...planned, command, folders: [temporary], temporary } }
}

function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

it('hands over every line of the metrics, then how verl ended, and keeps its console', async () => {
  const { path, metrics, launch } = prepare(['step=0', 'say=\x1b[36mTraining:  10%\rTraining: 100%\x1b[0m', 'step=1', 'step=2'])
  const exit = await (await launch()).ended
  expect(exit).toEqual({ code: 0, signal: null, stopped: false, error: null })
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2])
  expect(readFileSync(join(path, 'verl.log'), 'utf8')).toBe('Training: 100%\n')
  expect(existsSync(join(path, 'ray'))).toBe(false)
})

it('gives verl what it reads of the environment, and none of the keys of others', async () => {
  const { launch, waitForLine } = prepare(['environment'], {
    inherited: { PATH: process.env['PATH'], OPENAI_API_KEY: 'secret', CUDA_VISIBLE_DEVICES: '3', PYTHONPATH: '/mine', RAY_X: 'r' },
    environment: { MY_OWN: '1', VERL_USE_EXTERNAL_MODULES: 'mine' },
  })
  await (await launch()).ended
  const environment = JSON.parse((await waitForLine(/^\{.*\}$/))[0])
  expect(environment).toMatchObject({
    CUDA_VISIBLE_DEVICES: '3',
    MY_OWN: '1',
    RAY_X: 'r',
    PYTHONPATH: `${bridgeDirectory}:/mine`,
    AWORLD_TRAIN_RUN: 'test',
    VERL_USE_EXTERNAL_MODULES: 'aworld_train_bridge.verl.plugin,mine',
  })
  expect(environment).not.toHaveProperty('OPENAI_API_KEY')
})

it('ends a daemon of its own session together with verl, by whatever verl ended', async () => {
  const { launch, waitForLine } = prepare(['child=1', 'exit=0'])
  const verl = await launch()
  const daemon = Number((await waitForLine(/^child (\d+)/))[1])
  await verl.ended
  expect(isRunning(daemon)).toBe(false)
})

it('stops verl that answers no signal, and what it started', async () => {
  const { launch, waitForLine } = prepare(['child=1', 'deaf=1', 'hang=1'])
  const verl = await launch()
  await waitForLine(/hanging/)
  const daemon = Number((await waitForLine(/^child (\d+)/))[1])
  const exit = await verl.stop()
  expect(exit).toMatchObject({ stopped: true, error: null, signal: 'SIGKILL' })
  expect(isRunning(daemon)).toBe(false)
})

it('lets verl end by itself on the first signal', async () => {
  // The next signal would come later than this test may take.
  const deadlines = { interruptMs: 600_000, terminateMs: 300, graceMs: 100 }
  const { launch, waitForLine } = prepare(['hang=1'], { deadlines })
  const verl = await launch()
  await waitForLine(/hanging/)
  expect(await verl.stop()).toMatchObject({ stopped: true, error: null })
})

it('leaves nothing behind when its guard is killed', async () => {
  const { launch, waitForLine } = prepare(['child=1', 'hang=1'])
  const verl = await launch()
  const daemon = Number((await waitForLine(/^child (\d+)/))[1])
  process.kill(verl.pid, 'SIGKILL')
  expect((await verl.ended).error?.code).toBe('TRAINER_PROCESS_DIED')
  expect(isRunning(daemon)).toBe(false)
})

it('leaves nothing behind when Node is killed', async () => {
  const { path } = prepare([])
  const start = startOf(path, { environment: {}, inherited: process.env }, ['python3', script, 'child=1', 'deaf=1', 'hang=1'])
  const program = `
    import { launchTrainer } from ${JSON.stringify(new URL('../../shared/process/launch-trainer.ts', import.meta.url))}
    await launchTrainer({ ...${JSON.stringify(start)}, console: { read() {}, failure: () => null }, python: 'python3',
      deadlines: { interruptMs: 200, terminateMs: 200, graceMs: 100 }, onLine: (line) => console.log(line) })`
  const node = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  node.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  await expect.poll(() => output.includes('hanging')).toBe(true)
  const daemon = Number(/child (\d+)/.exec(output)?.[1])
  expect(isRunning(daemon)).toBe(true)
  node.kill('SIGKILL')
  await expect.poll(() => isRunning(daemon) || existsSync(join(path, 'ray')), { interval: 50 }).toBe(false)
})

it.each([
  ['raise=CUDA out of memory. Tried to allocate 2 GiB', 'TRAINER_OUT_OF_MEMORY', /gpu_memory_utilization/],
  ["say=(TaskRunnerV1 pid=7) ModuleNotFoundError: No module named 'transfer_queue'", 'TRAINER_ENVIRONMENT', /"transfer_queue"/],
  ['raise=Something of its own', 'TRAINER_FAILED', /RuntimeError: Something of its own .*verl\.log/],
  ['kill=9', 'TRAINER_PROCESS_DIED', /SIGKILL/],
])('names why verl ended: %s', async (step, code, message) => {
  const { launch } = prepare([step, 'exit=1'])
  const { error } = await (await launch()).ended
  expect(error?.code).toBe(code)
  expect(error?.message).toMatch(message)
})

it('says what to do where Python is not there', async () => {
  const { launch } = prepare([], { python: '/nowhere/python' })
  await expect(launch()).rejects.toMatchObject({ code: 'TRAINER_ENVIRONMENT', message: expect.stringContaining('/nowhere/python') })
})
