import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gspo, type PolicyLoss } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository } from './support/run-cli.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject, openTrainer } from './support/tiny-project.ts'

let folder: string
let model: string
let page: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-loss-'))
  model = await makeTinyModel(join(folder, 'model'))
  page = await readFile(join(repository, 'docs/3.guides/own-loss.md'), 'utf8')
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

it('trains by the loss of a file, as its guide has it', async () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(page) ?? []
  const loss = './loss.ts#mine'
  const trainWith = async (training: object) => {
    const project = await makeProject(folder, model, { config: { training }, files: { 'loss.ts': code } })
    return await (await openTrainer(project)).train()
  }
  const report = await trainWith({ loss })
  // In one pass every ratio is 1, and the gradient of the loss in the box is this one.
  const inTheBox = await trainWith({ aggregation: 'sequence-mean' })
  const normsOf = ({ curve }: typeof report) => curve.map(({ metrics }) => metrics['gradNorm'] ?? 0)
  expect(Math.max(...normsOf(report))).toBeGreaterThan(0)
  for (const [step, norm] of normsOf(report).entries()) expect(norm).toBeCloseTo(normsOf(inTheBox)[step]!, 4)
  expect(report.curve.map(({ metrics }) => metrics['loss'])).not.toEqual(inTheBox.curve.map(({ metrics }) => metrics['loss']))
  expect(await readFile(join(report.path, 'final_trainer.yaml'), 'utf8')).toContain(`loss: ${loss}`)
})

it('trains by a function, whose numbers are in the report, and which is in the files of the run by its name', async () => {
  const inner = gspo()
  const calls: number[] = []
  const mine: PolicyLoss = (rows) => {
    calls.push(rows.length)
    return inner(rows)
  }
  const project = await makeProject(folder, model)
  const config = { model: { path: model }, training: { steps: 2, promptsPerStep: 2, samplesPerPrompt: 8, passes: 2, loss: mine } }
  const report = await (await openTrainer(project, { config })).train()
  const trained = report.curve.filter(({ metrics }) => metrics['updates']! > 0)
  expect(calls).toHaveLength(2 * trained.length)
  expect(trained.length).toBeGreaterThan(0)
  for (const { metrics } of trained) expect(metrics['loss/ratio']).toBeGreaterThan(0)
  expect(await readFile(join(report.path, 'final_trainer.yaml'), 'utf8')).toContain('loss: mine')
})

it('has the losses of the package as its guide shows them', async () => {
  const code = await readFile(join(repository, 'packages/core/src/loss/losses.ts'), 'utf8')
  expect(page).toContain(code.replace("'../contracts/policy-loss.ts'", "'aworld-train'").trimEnd())
})
