// @module-tag quick
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { openFolder } from '@aworld-train/dashboard'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, type ProjectChanges, type TinyProject } from '../../support/tiny-project.ts'

const steps = 8

let folder: string
let model: string

/** Of every third group the last sample sleeps for longer than some steps take, so that later groups overtake it. */
const changes: ProjectChanges = {
  definition: { name: 'carry' },
  config: { training: { steps, checkpointEvery: 2, maxStaleness: 1 }, concurrency: 16 },
  files: {
    'agent.ts': `
export async function agent(task, context) {
  const { baseUrl, apiKey, model } = context.policy()
  const response = await fetch(baseUrl + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + apiKey },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] }),
    signal: context.signal,
  })
  if (!response.ok) throw new Error(await response.text())
  const { content } = (await response.json()).choices[0].message
  const [step, position, sample] = context.rollout.split('/').slice(1).map(Number)
  const isSlow = ((step - 1) * 2 + position) % 3 === 1 && sample === 3
  await new Promise((resolve) => setTimeout(resolve, isSlow ? 1500 : 5))
  return content + ' ' + sample
}
`,
    'reward.ts': 'export const saysYes = (_source: string, answer: string) => (Number(answer.slice(-1)) % 2 === 1 ? 1 : 0)\n',
  },
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-carry-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

it('a run whose groups are ahead of their step is killed five times, and makes the steps that it had made', async () => {
  const project = await makeProject(folder, model, changes)
  let made: Made = { steps: [], weights: {} }
  for (const [kill, step] of [1, 2, 4, 5, 7].entries()) {
    const { signal, code, stderr } = await runCli(['train', project.folder, '--json'], {
      onLine(line, child) {
        // At different moments after a step: in its commit, while groups go on, and within the next step.
        if (line.includes(kill % 2 === 0 ? '"step-end"' : '"step-start"') && line.includes(`"step":${step},`))
          setTimeout(() => child.kill('SIGKILL'), kill * 7)
      },
    })
    expect(signal ?? code, stderr).toBe('SIGKILL')
    const now = madeBy(project)
    expect(now.steps.slice(0, made.steps.length)).toEqual(made.steps)
    expect(now.weights).toMatchObject(made.weights)
    made = now
  }
  const last = await runCli(['train', project.folder, '--json'])
  expect(last.code, last.stderr).toBe(0)
  const end = madeBy(project)
  expect(end.steps.slice(0, made.steps.length)).toEqual(made.steps)
  expect(end.weights).toMatchObject(made.weights)
  const { report, path } = await reportOf(project)
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(Math.max(...report.curve.map(({ metrics }) => metrics!['mostStaleness']!))).toBeGreaterThan(0)
  await expectWholeSteps(path)
})

it('a run that is stopped says what was in flight, and is finished by the same command', async () => {
  const project = await makeProject(folder, model, changes)
  const stopped = await runCli(['train', project.folder, '--json'], {
    onLine(line, child) {
      if (line.includes('"step-end"') && line.includes('"step":3,')) child.kill('SIGINT')
    },
  })
  expect(stopped.code, stopped.stderr).toBe(130)
  const { report } = await reportOf(project)
  expect(report).toMatchObject({ status: 'stopped', ledger: { unexplained: 0 } })
  const { code, stderr } = await runCli(['train', project.folder])
  expect(code, stderr).toBe(0)
  const finished = await reportOf(project)
  expect(finished.report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  await expectWholeSteps(finished.path)
})

interface Made {
  /** The rollouts that each committed step trained. */
  readonly steps: readonly (readonly string[])[]
  /** Checkpoints of committed steps to hashes of their weights. */
  readonly weights: Readonly<Record<string, string>>
}

function madeBy(project: TinyProject): Made {
  const path = join(project.runPath, readdirSync(project.runPath)[0]!)
  const run = readRun(path)
  const records = run.steps()
  run.close()
  const weights = records.flatMap(({ checkpoint }) => {
    const file = join(path, checkpoint ?? '', 'model.safetensors')
    return checkpoint === null || !existsSync(file) ? [] : [[checkpoint, createHash('sha256').update(readFileSync(file)).digest('hex')]]
  })
  return { steps: records.map(({ rollouts }) => rollouts), weights: Object.fromEntries(weights) }
}

async function reportOf(project: TinyProject): Promise<{ report: RunReport; path: string }> {
  const [path] = await project.runs()
  return { path: path!, report: JSON.parse(readFileSync(join(path!, 'report.json'), 'utf8')) as RunReport }
}

/** Every group stands under the step that trained it, as the dashboard shows it, and every token has its place. */
async function expectWholeSteps(path: string): Promise<void> {
  const run = await openFolder(path)
  const { ledger, steps: summaries } = await run.summary()
  const { rows } = await run.rollouts({ split: 'train' })
  run.close()
  expect(ledger.unexplained).toBe(0)
  expect(summaries.map(({ step, rollouts }) => [step, rollouts])).toEqual(Array.from({ length: steps }, (_, index) => [index + 1, 8]))
  for (const { step, groups, trainedTokens, untrainedTokens, tokens } of summaries) {
    expect([step, groups.right + groups.mixed + groups.wrong]).toEqual([step, 2])
    const explained = Object.values(untrainedTokens).reduce((sum, each) => sum + each, trainedTokens)
    expect(explained).toBeCloseTo(tokens * 8, 6)
  }
  expect(new Set(rows.map(({ key }) => key)).size).toBe(steps * 8)
}
