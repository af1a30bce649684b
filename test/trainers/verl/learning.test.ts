// The main example trained by the real verl: what it learns, what it counts, and where its time goes.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import local from '../../../examples/periodic-table/aworld-train.config.ts'
import verl from '../../../examples/verl-periodic-table/aworld-train.config.ts'
import { besideEachOther } from '../../../examples/verl-periodic-table/curves.ts'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'

let folder: string
let runs: { readonly verl: RunReport; readonly local: RunReport }

beforeAll(async () => {
  process.env['AWORLD_TRAIN_PYTHON'] = await verlEnvironment()
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-learning-'))
  const train = async (definition: typeof verl, example: string) =>
    await new AgentTrainer({ ...definition, baseDirectory: join(repository, 'examples', example), runPath: folder }).train()
  runs = { verl: await train(verl, 'verl-periodic-table'), local: await train(local, 'periodic-table') }
  console.log(`\n${besideEachOther(runs)}\n`)
  console.log(timesOf(runs.verl))
}, 1_500_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Share of a step in which rollouts ran and no model call was under way: the agent, its tools, the gateway or the channel had the floor. */
const idleShare = ({ curve }: RunReport) => median(curve.map(({ metrics }) => metrics['idleMs']! / (metrics['timing_s/step']! * 1000)))

function timesOf(report: RunReport): string {
  const { curve, times, counts } = report
  const phases = Object.entries(times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(1)} s`)
  const step = (name: string) => median(curve.map(({ metrics }) => metrics[name] ?? Number.NaN)).toFixed(0)
  return `verl: ${(times.wallMs / 1000).toFixed(0)} s in all: ${phases.join(', ')}\nmedian step: rollout ${step('rolloutMs')} ms, update ${step('updateMs')} ms, weight sync ${step('weightSyncMs')} ms, ${(idleShare(report) * 100).toFixed(1)} % idle\nNode: ${(times.cpuMs / counts.modelCalls.engine).toFixed(2)} ms of processor time a model call, its agent, tools and start included`
}

it('begins at 0.3 or below and reaches 0.75 or more on held-out tasks', () => {
  expect(runs.verl.before!.reward).toBeLessThanOrEqual(0.3)
  expect(runs.verl.after!.reward).toBeGreaterThanOrEqual(0.75)
  expect(runs.verl.after!.name).toBe('test after step 15')
})

it('trains every token that verl sampled once, or says why not', async () => {
  const { ledger } = runs.verl
  expect(ledger).toMatchObject({ unexplained: 0 })
  expect(ledger!.trained).toBeGreaterThan(10_000)
  const whole = JSON.parse(await readFile(join(runs.verl.path, 'ledger.json'), 'utf8'))
  expect(whole.trainedTwice).toEqual([])
  expect(whole.engineTokens).toBe(ledger!.sampled)
})

it("agrees with the trainer about every sampled token's logprob", async () => {
  const { logprobDifference } = JSON.parse(await readFile(join(runs.verl.path, 'ledger.json'), 'utf8'))
  expect(logprobDifference.first).toBeLessThanOrEqual(1e-4)
})

it('shows rollout, update, weight sync and validation apart', () => {
  for (const phase of ['rollout', 'update', 'weight-sync', 'validation']) expect(runs.verl.times.phasesMs[phase], phase).toBeGreaterThan(0)
})

it('waits for neither agent nor bridge for more than 15 % of a step', () => {
  expect(idleShare(runs.verl)).toBeLessThanOrEqual(0.15)
})
