// @module-tag quick
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseEvents, runCli } from '../../support/run-cli.ts'
import { makeTinyModel } from '../../support/tiny-model.ts'
import { makeProject, type ProjectChanges, type TinyProject } from '../../support/tiny-project.ts'

const steps = 6
const samplesPerPrompt = 6

let folder: string
let model: string

/** Groups that end early and steps that are filled; about half of all samples are solved, whatever the task. */
const changes = (threads: number, concurrency: number): ProjectChanges => ({
  definition: { name: 'waves' },
  config: {
    training: { steps, promptsPerStep: 4, samplesPerPrompt, firstSamples: 2, teachingPrompts: 4, maxPrompts: 9, checkpointEvery: 2 },
    engine: { threads },
    concurrency,
  },
  files: {
    'reward.ts': 'export const saysYes = (_source: string, answer: string) => (answer.length % 2)\n',
  },
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-waves-'))
  model = await makeTinyModel(join(folder, 'model'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

it('one seed gives one run on one thread and two, with few slots and many, and after two kills between waves', async () => {
  const whole = await makeProject(folder, model, changes(1, 128))
  await finish(whole)
  const expected = await outcomeOf(whole)
  expect(Object.values(expected.weights)).toHaveLength(3)
  expect(new Set(Object.values(expected.weights)).size).toBe(3)
  const total = (name: 'groupsSolved' | 'groupsDrawn') => expected.metrics.reduce((sum, metrics) => sum + metrics[name]!, 0)
  expect(total('groupsSolved')).toBeGreaterThan(3)
  expect(total('groupsDrawn')).toBeGreaterThan(steps * 4)

  const wide = await makeProject(folder, model, changes(2, 16))
  await finish(wide)
  expect(await outcomeOf(wide)).toEqual(expected)

  const killed = await makeProject(folder, model, changes(2, 16))
  // One when a group of a step has ended while others go on, one when about its first wave has, after which it draws more.
  for (const groups of [1, 4]) {
    let ended = 0
    const { signal, code, stderr } = await runCli(['train', killed.folder, '--json'], {
      onLine(line, child) {
        if (line.includes('"step-start"')) ended = 0
        if (line.includes('"group-end"') && ++ended === groups && !line.includes('"train/1/')) child.kill('SIGKILL')
      },
    })
    expect(signal ?? code, stderr).toBe('SIGKILL')
  }
  await finish(killed)
  expect(await outcomeOf(killed)).toEqual(expected)
})

async function finish(project: TinyProject): Promise<void> {
  const { code, stdout, stderr } = await runCli(['train', project.folder, '--json'])
  expect(code, stderr).toBe(0)
  expect(parseEvents(stdout).at(-1)).toMatchObject({ type: 'run-end', status: 'finished' })
}

/** What a seed decides: weights, rewards, which rollouts were started, and the account of their tokens. */
async function outcomeOf(project: TinyProject) {
  const [path] = await project.runs()
  const report = JSON.parse(await readFile(join(path!, 'report.json'), 'utf8')) as RunReport
  expect(report.ledger?.unexplained).toBe(0)
  const run = readRun(path!)
  const records = run.steps()
  const episodes = [...run.episodes({ split: 'train' })]
  run.close()
  const notStarted = records.reduce((sum, { metrics }) => sum + metrics['notStarted']!, 0)
  const groups = new Set(episodes.map(({ group }) => group)).size
  expect(episodes).toHaveLength(groups * samplesPerPrompt - notStarted)
  expect(report.counts).toMatchObject({ notStarted })
  const weights: Record<string, string> = {}
  for (const { checkpoint } of records) {
    if (checkpoint === null) continue
    const bytes = await readFile(join(path!, checkpoint, 'model.safetensors'))
    weights[checkpoint] = createHash('sha256').update(bytes).digest('hex')
  }
  const { rollouts, episodesByStopReason } = report.counts
  return {
    weights,
    curve: report.curve.map(({ reward }) => reward),
    metrics: records.map(({ metrics: { groupsDrawn, groupsSolved, notStarted: left } }) => ({
      groupsDrawn,
      groupsSolved,
      notStarted: left,
    })),
    rewards: Object.fromEntries(episodes.map(({ rollout, reward }) => [rollout, reward])),
    ledger: report.ledger,
    counts: { rollouts, episodesByStopReason },
  }
}
