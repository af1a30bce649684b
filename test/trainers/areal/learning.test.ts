// The main example, unchanged but for its trainer, trained by the real AReaL.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/protocol'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { arealEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'

const steps = 20

let folder: string
let report: RunReport

beforeAll(async () => {
  process.env['AWORLD_TRAIN_PYTHON'] = await arealEnvironment()
  folder = await mkdtemp(join(tmpdir(), 'aworld train areal-'))
  const baseDirectory = join(repository, 'examples', 'periodic-table')
  report = await new AgentTrainer({ ...definition, trainEngineName: 'areal', steps, baseDirectory, runPath: folder }).train()
  const phases = Object.entries(report.times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(1)} s`)
  console.log(
    `areal: ${report.before?.reward} to ${report.after?.reward}, ${(report.times.wallMs / 1000).toFixed(0)} s: ${phases.join(', ')}`,
  )
  console.log(report.curve.map(({ reward }) => reward.toFixed(2)).join(' '))
}, 1_500_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

it('begins at 0.3 or below and reaches 0.75 or more on held-out tasks', () => {
  expect(report.before!.reward).toBeLessThanOrEqual(0.3)
  expect(report.after!.reward).toBeGreaterThanOrEqual(0.75)

  expect(report.after!.name).toBe(`test after step ${steps}`)
})

it('trains every token that was sampled once, or says why not, and agrees about its logprob', async () => {
  expect(report.ledger).toMatchObject({ unexplained: 0 })
  expect(report.ledger!.trained).toBeGreaterThan(10_000)
  const { trainedTwice, logprobDifference } = JSON.parse(await readFile(join(report.path, 'ledger.json'), 'utf8'))
  expect(trainedTwice).toEqual([])
  expect(logprobDifference.largest ?? logprobDifference.first).toBeLessThanOrEqual(1e-4)
})
