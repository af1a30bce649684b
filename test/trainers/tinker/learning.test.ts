// The main example over SkyRL's open server, LoRA of rank 32 from the warm-up checkpoint: a whole training of some minutes.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTinkerEngine } from '@aworld-train/engine-tinker'
import { AgentTrainer } from 'aworld-train'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { repository } from '../../support/run-cli.ts'
import { probeDraw } from './probe-draw.ts'
import { type SkyrlServer, startSkyrl } from './start-skyrl.ts'

const example = join(repository, 'examples/periodic-table')
let folder: string
let server: SkyrlServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld train tinker-'))
  server = await startSkyrl(join(example, 'model'))
})

afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

it('the agent of the main example learns over a Tinker service, from at most 0.3 of the test tasks to at least 0.75', async () => {
  const lines = (await readFile(join(example, 'data/test.jsonl'), 'utf8')).trim().split('\n')
  const heldOut = lines.filter((_, index) => index % 4 === 0).map((line) => JSON.parse(line) as Record<string, unknown>)
  const config = definition.config as { readonly tinker: object }
  const trainer = await AgentTrainer.create({
    ...definition,
    baseDirectory: example,
    trainEngineName: 'tinker',
    validationDataset: undefined,
    testDataset: heldOut,
    steps: 20,
    runPath: folder,
    config: { ...config, evaluation: { greedy: false }, tinker: { ...config.tinker, url: server.url } },
  })
  const { before, after, curve, ledger, times } = await trainer.train()
  const gaps = curve.map(({ metrics }) => metrics['maxLogprobDifference'] ?? 0)
  console.log(
    `held out ${before?.reward.toFixed(3)} to ${after?.reward.toFixed(3)} in ${curve.length} steps, largest gap ${Math.max(...gaps)}`,
  )
  const phases = Object.entries(times.phasesMs).map(([phase, ms]) => `${phase} ${(ms / 1000).toFixed(0)} s`)
  console.log(`${(times.wallMs / 1000).toFixed(0)} s: ${phases.join(', ')}`)
  console.log(curve.map(({ reward }) => reward.toFixed(2)).join(' '))
  expect(before!.reward).toBeLessThanOrEqual(0.3)
  expect(after!.reward).toBeGreaterThanOrEqual(0.75)
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1e-4)
  expect(ledger).toMatchObject({ unexplained: 0 })
}, 1_800_000)

it('a draw leaves the weights that are trained as they are', async () => {
  const tinker = await createTinkerEngine({ url: server.url, model: join(example, 'model'), name: 'model' })
  onTestFinished(() => tinker.close())
  const { byUpdate, byDraw } = await probeDraw(tinker)
  expect(byUpdate).toBeGreaterThan(1e-3)
  expect(byDraw).toBeLessThan(1e-6)
}, 1_800_000)
