import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { AgentTrainer, type AgentTrainerOptions, type RunEvent } from 'aworld-train'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { makeTinyModel } from '../../test/support/tiny-model.ts'
import { makeProject, openTrainer, type ProjectChanges, taskLines } from '../../test/support/tiny-project.ts'
import { RejectionSampling } from './rejection-sampling.ts'

const trainEngineName = 'rejection-sampling'
let folder: string
let model: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'custom-trainer-'))
  model = await makeTinyModel(join(folder, 'model'))
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
beforeEach(() => AgentTrainer.registerProcessor(trainEngineName, RejectionSampling))
afterEach(() => {
  AgentTrainer.unregisterProcessor(trainEngineName)
})

/** Trains a policy that says yes or no. */
async function createTrainer(changes: ProjectChanges, options: Partial<AgentTrainerOptions> = {}) {
  const events: RunEvent[] = []
  const onEvent = (event: RunEvent) => events.push(event)
  const testDataset = './train.jsonl'
  return {
    trainer: await openTrainer(await makeProject(folder, model, changes), { testDataset, trainEngineName, onEvent, ...options }),
    events,
  }
}

it('learns nothing where no episode is kept', async () => {
  const { trainer } = await createTrainer({}, { rewardFunc: () => 0 })
  const report = await trainer.train()
  expect(report.curve.map(({ reward }) => reward)).toEqual([0, 0, 0, 0, 0])
  expect(report.after!.reward).toBe(0)
})

it('closes the run as stopped when it is aborted', async () => {
  const { trainer, events } = await createTrainer({ files: { 'train.jsonl': `${taskLines(40)}\n` } })
  const controller = new AbortController()
  const training = trainer.train(controller.signal)
  while (!events.some(({ type }) => type === 'rollout-end')) await setTimeout(5)
  controller.abort(new Error('enough'))
  await expect(training).rejects.toThrow()
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'stopped' })
})

it('ends the run as failed where the starting model cannot be made', async () => {
  const { trainer, events } = await createTrainer({ config: { model: { warmUp: './reward.ts#saysYes' } } })
  await expect(trainer.train()).rejects.toThrow()
  expect(events.at(-1)).toMatchObject({ type: 'run-end', status: 'failed' })
})

it('is the code that the guide shows', async () => {
  const guide = await readFile(new URL('../../docs/3.guides/custom-trainer.md', import.meta.url), 'utf8')
  const code = await readFile(new URL('rejection-sampling.ts', import.meta.url), 'utf8')
  expect(guide).toContain(code.trimEnd())
})
