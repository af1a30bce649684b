// A training that loses Node in one step and verl in the next, and goes on each time; its model is exported.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { runCli } from '../../support/run-cli.ts'

interface Event {
  readonly type?: string
  readonly step?: number
  readonly error?: string
  readonly resumedFromStep?: number | null
}

let folder: string
let temporary: string
let environment: NodeJS.ProcessEnv
let training: Training | undefined

interface Training {
  readonly child: ChildProcess
  readonly events: Event[]
  readonly closed: Promise<number | null>
  until(found: (event: Event) => boolean): Promise<void>
}

/** The same command each time. */
function train(): Training {
  const script = join(import.meta.dirname, 'resume', 'train.ts')
  const child = spawn(process.execPath, [script, join(folder, 'runs')], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const events: Event[] = []
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() as string
    events.push(...lines.map((line) => JSON.parse(line) as Event))
  })
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  training = {
    child,
    events,
    closed,
    async until(found) {
      await expect.poll(() => child.exitCode !== null || events.some(found), { timeout: 400_000, interval: 50 }).toBe(true)
      expect(events.some(found), JSON.stringify(events.at(-1))).toBe(true)
    },
  }
  return training
}

/** Processes of the training but this one's: those that carry its run in their environment. */
function processesOfRun(): { readonly pid: number; readonly command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, 'utf8').includes(`AWORLD_TRAIN_RUN_PATH=${folder}`)) return []
        return [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ') }]
      } catch {
        return []
      }
    })
}

async function expectNothingLeft(): Promise<void> {
  await expect.poll(() => processesOfRun().map(({ command }) => command), { timeout: 60_000, interval: 200 }).toEqual([])
  // A killed Node leaves the folder of its tool servers to the next one; what torch compiled is torch's cache.
  const kept = /^(?:aworld-train-environment-|torchinductor_)/
  const left = async () => (await readdir(temporary)).filter((name) => !kept.test(name))
  await expect.poll(left).toEqual([])
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'awt-resume-'))
  // Ray's sockets lie below it.
  temporary = await mkdtemp(join(tmpdir(), 'awt-'))
  environment = { ...process.env, AWORLD_TRAIN_PYTHON: await verlEnvironment(), TMPDIR: temporary }
})

afterAll(async () => {
  training?.child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
  await rm(temporary, { recursive: true, force: true })
})

const runOf = async () => join(folder, 'runs', (await readdir(join(folder, 'runs')))[0] as string)

it('leaves no process behind when Node is killed', async () => {
  const { child, closed, until } = train()
  await until(({ type, step }) => type === 'step-end' && step === 1)
  expect(processesOfRun().length).toBeGreaterThan(5)
  child.kill('SIGKILL')
  await closed
  await expectNothingLeft()
}, 600_000)

it('goes on from the checkpoint, and says so when verl is killed in mid-step', async () => {
  const { events, closed, until } = train()
  await until(({ type }) => type === 'step-start')
  const start = events.find(({ type }) => type === 'run-start')
  expect(start?.resumedFromStep).toBeGreaterThanOrEqual(1)
  const verlMain = processesOfRun().find(({ command }) => /python\S* -m verl\.trainer\.main_ppo/.test(command))
  process.kill(verlMain?.pid as number, 'SIGKILL')
  expect(await closed).toBe(1)
  expect(events.at(-1)).toEqual({ error: 'TRAINER_PROCESS_DIED' })
  await expectNothingLeft()
}, 600_000)

it('ends with all steps, no token unexplained and no rollout trained twice', async () => {
  const { closed } = train()
  expect(await closed).toBe(0)
  await expectNothingLeft()
  const path = await runOf()
  expect(await readdir(join(folder, 'runs'))).toHaveLength(1)
  const report = RunReport.parse(JSON.parse(await readFile(join(path, 'report.json'), 'utf8')))
  expect(report).toMatchObject({ status: 'finished', before: { step: 0, failed: 0 }, after: { step: 4, failed: 0 } })
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2, 3, 4])
  expect(report.ledger?.unexplained).toBe(0)
  const ledger = JSON.parse(await readFile(join(path, 'ledger.json'), 'utf8'))
  expect(ledger.trainedTwice).toEqual([])
  expect(ledger.incarnations).toHaveLength(3)
  expect(ledger.logprobDifference.first).toBeLessThan(1e-4)
}, 600_000)

it('exports the newest checkpoint as a Hugging Face folder', async () => {
  const target = join(folder, 'model')
  const { code, stdout, stderr } = await runCli(['export', await runOf(), '--what', 'model', '--to', target], {
    cwd: folder,
    env: environment as Record<string, string>,
    deadlineMs: 120_000,
  })
  expect(code, stdout + stderr).toBe(0)
  expect(stdout).toContain('after step 4')
  for (const file of ['config.json', 'model.safetensors', 'tokenizer.json']) expect(existsSync(join(target, file)), file).toBe(true)
  expect(JSON.parse(await readFile(join(target, 'config.json'), 'utf8'))).toMatchObject({ model_type: 'qwen3', dtype: 'float32' })
})
