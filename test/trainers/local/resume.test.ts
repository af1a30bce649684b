// @module-tag quick
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseEvents, repository, runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, openTrainer, type ProjectChanges, type TinyProject, taskLines } from '../../support/tiny-project.ts'

const steps = 6
const toolServer = join(repository, 'packages/environment/src/testing/tool-server.ts')

let folder: string
let model: string
let marker: string
let whole: RunOutcome

/** Six steps, a tool server of its own for each rollout, evaluations, a checkpoint every other step. */
const changes = (): ProjectChanges => ({
  definition: { testDataset: './test.jsonl' },
  config: { training: { steps, checkpointEvery: 2 }, concurrency: 4 },
  files: {
    'test.jsonl': `${taskLines(3, 90)}\n`,
    'agent.ts': `
async function run(task, context) {
  const { baseUrl, apiKey, model } = context.policy('agent')
  const messages = [{ role: 'user', content: task.input }]
  const ask = async () => {
    const response = await fetch(baseUrl + '/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
      body: JSON.stringify({ model, messages }),
      signal: context.signal,
    })
    if (!response.ok) throw new Error(await response.text())
    const { content } = (await response.json()).choices[0].message
    messages.push({ role: 'assistant', content })
    return content
  }
  const first = await ask()
  const tools = await context.tools('agent')
  const { content } = await tools.call({ name: 'echo', arguments: { text: first } }, context.signal)
  messages.push({ role: 'user', content })
  return { answer: await ask(), messages }
}
const server = { command: 'node', args: [${JSON.stringify(toolServer)}, '--log', ${JSON.stringify(marker)}], stateless: true }
export const agent = { agents: [{ name: 'agent', trainable: true, mcpConfig: { mcpServers: { tools: server } } }], run }
`,
  },
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-resume-'))
  marker = join(folder, 'servers.log')
  model = await makeTinyModel(join(folder, 'model'))
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  const project = await makeProject(folder, model, changes())
  await (await openTrainer(project)).train()
  whole = await outcomeOf(project)
})

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

describe('an uninterrupted run', () => {
  it('trains, so that equal weights below mean something', () => {
    expect(whole.curve).toHaveLength(steps)
    expect(new Set(whole.curve).size).toBeGreaterThan(2)
    expect(whole.checkpoints.length).toBeGreaterThanOrEqual(3)
    expect(new Set(Object.values(whole.weights)).size).toBeGreaterThan(2)
    const { modelCalls, toolCalls } = whole.report.counts
    expect(modelCalls).toMatchObject({ agent: modelCalls.gateway, engine: modelCalls.gateway })
    expect(toolCalls.agent).toBe(toolCalls.environment)
    expectWholeRecord(whole)
  })
})

describe('a stop by signal', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)('%s ends with code 130, says how to resume, and the same command does', async (signal) => {
    const project = await makeProject(folder, model, changes())
    let ended = 0
    const stopped = await runCli(['train', project.folder], {
      onLine(line, child) {
        if (line.startsWith('train: ') && ended++ === 0) child.kill(signal)
      },
    })
    expect(stopped.code, stopped.stderr).toBe(130)
    expect(stopped.stderr).toContain(`${signal}: stopping; once more ends at once.`)
    expect(stopped.stdout).toMatch(/stopped; to resume .*runs\/.*:\n {2}.*aworld-train.* train .*project-/)
    await expectNothingLeft()
    const resumed = await runCli(['train', project.folder])
    expect(resumed.code, resumed.stderr).toBe(0)
    expect(resumed.stdout).toMatch(/resumed after step \d/)
    await expectSameAsWhole(project)
  })

  it('after a change of the reward the same command starts a new run', async () => {
    const project = await makeProject(folder, model, changes())
    const stopped = await runCli(['train', project.folder, '--json'], {
      onLine(line, child) {
        if (line.includes('"step-end"')) child.kill('SIGINT')
      },
    })
    expect(stopped.code, stopped.stderr).toBe(130)
    await appendFile(join(project.folder, 'reward.ts'), '// another reward\n')
    const { code, stdout, stderr } = await runCli(['train', project.folder, '--json'])
    expect(code, stderr).toBe(0)
    expect(parseEvents(stdout)[0]).toMatchObject({ type: 'run-start', resumedFromStep: null })
    expect(await project.runs()).toHaveLength(2)
    const [first] = await project.runs()
    const named = await runCli(['train', project.folder, '--resume', first as string])
    expect(named).toMatchObject({ code: 2, stderr: expect.stringContaining('What differs: the reward.') })
  })

  it('a second one ends at once, and leaves no tool server', async () => {
    const project = await makeProject(folder, model, changes())
    const { code, stdout, stderr } = await runCli(['train', project.folder, '--json'], {
      onLine(line, child) {
        if (line.includes('"rollout-start"') || line.includes('stopping;')) child.kill('SIGINT')
      },
    })
    expect(code, stderr).toBe(130)
    expect(stderr).toContain('once more ends at once')
    expect(stdout).not.toContain('"finished"')
    await expectNothingLeft()
  })

  it('at any time, ends with code 130 and a run that the same command finishes', async () => {
    const project = await makeProject(folder, model, changes())
    const random = createRandom(7)
    for (let stop = 0; stop < 3; stop++) {
      const delayMs = 200 + random() * 700
      const { code, signal, stdout, stderr } = await runCli(['train', project.folder], {
        onStart: (child) => void setTimeout(() => child.kill(stop % 2 === 0 ? 'SIGINT' : 'SIGTERM'), delayMs),
      })
      // Before its first line has run, a process ends by the signal itself, which a shell shows as the same code.
      expect([130, 'SIGINT', 'SIGTERM'], `${delayMs} ms\n${stdout}${stderr}`).toContain(code ?? signal)
      expect(`${stdout}${stderr}`).not.toMatch(/^\s+at /m)
      if (code === 130) expect(stdout).toMatch(/stopped; to .*:\n {2}.*aworld-train.* train /)
    }
    await expectNothingLeft()
    expect((await runCli(['train', project.folder])).code).toBe(0)
    await expectSameAsWhole(project)
  })
})

describe('a run that is killed', () => {
  it('at ten random points resumes each time, trains every rollout once and ends with the same bits', async () => {
    const seed = Number(process.env['AWORLD_TRAIN_TEST_SEED'] ?? 20_261_121)
    const random = createRandom(seed)
    const project = await makeProject(folder, model, changes())
    const points: string[] = []
    const temporary = join(folder, 'temporary')
    await mkdir(temporary)
    const env = { TMPDIR: temporary }
    const progress = { rollouts: [] as string[], step: 0 }
    let turns = 0
    for (let kills = 0; kills < 10; kills++) {
      const afterEvents = 1 + Math.floor(random() * 9)
      const delayMs = random() * 8
      points.push(`${afterEvents} events + ${delayMs.toFixed(0)} ms`)
      let events = 0
      const { signal, code, stdout, stderr } = await runCli(['train', project.folder, '--json'], {
        env,
        onLine(line, child) {
          if (line.startsWith('{') && ++events === afterEvents) setTimeout(() => child.kill('SIGKILL'), delayMs)
        },
      })
      expect(signal ?? code, `seed ${seed}, ${points.at(-1)}\n${stdout}${stderr}`).toBe('SIGKILL')
      for (const event of parseEvents(stdout.slice(0, stdout.lastIndexOf('\n') + 1))) {
        if (event.type === 'rollout-end') progress.rollouts.push(event.rollout)
        if (event.type === 'step-end') progress.step = event.step
      }
      const record = recordOf(project)
      const point = `seed ${seed}: ${points.join('; ')}`
      expect(record.turns, point).toBeGreaterThanOrEqual(turns)
      expect(new Set(progress.rollouts).difference(record.results), point).toEqual(new Set())
      expect(record.step, point).toBeGreaterThanOrEqual(progress.step)
      turns = record.turns
    }
    expect(new Set(progress.rollouts).size).toBe(progress.rollouts.length)
    console.log(`killed at: ${points.join('; ')} (AWORLD_TRAIN_TEST_SEED=${seed})`)
    const last = await runCli(['train', project.folder, '--json'], { env })
    expect(last.code, last.stderr).toBe(0)
    expect(parseEvents(last.stdout).at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
    await expectNothingLeft()
    expect(await readdir(temporary)).toEqual([])
    expect((await readdir((await project.runs())[0] as string)).sort()).toEqual((await readdir(whole.path)).sort())
    await expectSameAsWhole(project)
  })
})

describe('the same seed gives the same curve and the same weights', () => {
  it.each([
    { threads: 1, concurrency: 64 },
    { threads: 2, concurrency: 8 },
    { threads: 2, concurrency: 64 },
  ])('with $threads threads and concurrency $concurrency', async ({ threads, concurrency }) => {
    const base = changes()
    const project = await makeProject(folder, model, { ...base, config: { ...base.config, engine: { threads }, concurrency } })
    await (await openTrainer(project)).train()
    await expectSameAsWhole(project)
  })

  it('and another seed another', async () => {
    const project = await makeProject(folder, model, changes())
    await (await openTrainer(project, { seed: 2 })).train()
    const { curve, weights } = await outcomeOf(project)
    expect(curve).not.toEqual(whole.curve)
    expect(weights).not.toEqual(whole.weights)
  })
})

interface RunOutcome {
  readonly path: string
  readonly report: RunReport
  readonly curve: readonly number[]
  readonly checkpoints: readonly string[]
  /** Checkpoints to hashes of their weights. */
  readonly weights: Readonly<Record<string, string>>
}

async function outcomeOf(project: TinyProject): Promise<RunOutcome> {
  const runs = await project.runs()
  expect(runs).toHaveLength(1)
  const path = runs[0] as string
  const report = JSON.parse(await readFile(join(path, 'report.json'), 'utf8')) as RunReport
  const checkpoints = (await readdir(join(path, 'checkpoints'))).sort()
  const weights: Record<string, string> = {}
  for (const name of checkpoints) {
    const bytes = await readFile(join(path, 'checkpoints', name, 'model.safetensors'))
    weights[name] = createHash('sha256').update(bytes).digest('hex')
  }
  return { path, report, curve: report.curve.map(({ reward }) => reward), checkpoints, weights }
}

async function expectSameAsWhole(project: TinyProject): Promise<void> {
  const outcome = await outcomeOf(project)
  expect(outcome.curve).toEqual(whole.curve)
  expect(outcome.weights).toEqual(whole.weights)
  expect(outcome.report.before?.reward).toBe(whole.report.before?.reward)
  expect(outcome.report.after?.reward).toBe(whole.report.after?.reward)
  expectWholeRecord(outcome)
}

/** Every rollout of every step has one result, is trained at most once and in its own step; every token is accounted for. */
function expectWholeRecord({ path, report }: RunOutcome): void {
  const { modelCalls, toolCalls } = report.counts
  expect(modelCalls.agent).toBe(whole.report.counts.modelCalls.agent)
  expect(modelCalls.gateway).toBeGreaterThanOrEqual(modelCalls.agent)
  expect(modelCalls.engine).toBeGreaterThanOrEqual(modelCalls.agent)
  expect(toolCalls.environment).toBeGreaterThanOrEqual(toolCalls.agent)
  expect(report.tokenReport?.turns).toBe(whole.report.tokenReport?.turns)
  expect(report.status).toBe('finished')
  expect(report.ledger?.unexplained).toBe(0)
  expect(report.ledger?.trained).toBe(whole.report.ledger?.trained)
  expect(report.counts.rollouts).toBe(whole.report.counts.rollouts)
  const run = readRun(path)
  try {
    const keys = [...run.episodes()].map(({ rollout }) => rollout)
    expect(new Set(keys).size).toBe(keys.length)
    expect(keys.filter((key) => key.startsWith('train/'))).toHaveLength(steps * 8)
    const trained = run.steps().flatMap(({ rollouts }) => rollouts)
    expect(new Set(trained).size).toBe(trained.length)
    for (const { step, rollouts } of run.steps()) for (const key of rollouts) expect(key).toMatch(new RegExp(`^train/${step}/`))
    expect(run.steps().map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, index) => index + 1))
    for (const episode of run.episodes()) {
      expect(episode.trajectories.flatMap(({ turns }) => turns)).toHaveLength(2)
      expect(episode.toolCalls).toHaveLength(1)
    }
  } finally {
    run.close()
  }
}

/** What a run has on record, read beside or after its owner. */
function recordOf(project: TinyProject): { turns: number; results: ReadonlySet<string>; step: number } {
  const [name] = existsSync(project.runPath) ? readdirSync(project.runPath) : []
  const file = join(project.runPath, name ?? '', 'run.db')
  if (name === undefined || !existsSync(file)) return { turns: 0, results: new Set(), step: 0 }
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const keys = database.prepare('SELECT r.key FROM episodes e JOIN rollouts r ON r.id = e.rollout').all()
    return {
      turns: Number(database.prepare('SELECT count(*) AS turns FROM turns').get()?.['turns']),
      results: new Set(keys.map(({ key }) => String(key))),
      step: Number(database.prepare('SELECT coalesce(max(step), 0) AS step FROM steps').get()?.['step']),
    }
  } finally {
    database.close()
  }
}

/** No tool server of these runs is alive. */
async function expectNothingLeft(): Promise<void> {
  if (process.platform !== 'linux') return
  for (let tries = 0; tries < 50 && serversAlive() > 0; tries++) await sleep(100)
  expect(serversAlive()).toBe(0)
}

function serversAlive(): number {
  let alive = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (command.includes(marker) && command.includes('tool-server')) alive++
    } catch {
      // The process ended while it was read.
    }
  }
  return alive
}

/** Mulberry32 (public domain, Tommy Ettinger): numbers in [0, 1) from a seed. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}
