// @module-tag quick
// A training through the façade over a double of a Tinker service, whose adapters are embedded policies.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../support/run-cli.ts'
import { openTinkerService, type TinkerService } from '../support/tinker-service.ts'
import { makeTinyModel } from '../support/tiny-model.ts'
import { makeProject, openTrainer, taskLines } from '../support/tiny-project.ts'

let folder: string
let model: string
let service: TinkerService

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld train tinker-'))
  model = await makeTinyModel(join(folder, 'model'))
  service = await openTinkerService(model, { apiKey: 'tml-test' })
  process.env['TINKER_API_KEY'] = 'tml-test'
})

afterAll(async () => {
  delete process.env['TINKER_API_KEY']
  await service?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const files = { 'test.jsonl': `${taskLines(8, 40)}\n` }
const project = (steps: number, tinker: object = {}) =>
  makeProject(folder, model, {
    definition: { testDataset: './test.jsonl' },
    config: {
      training: { steps, samplesPerPrompt: 8, learningRate: 1e-2, warmupSteps: 0, weightDecay: 0, maxGradNorm: 0 },
      evaluation: { samplesPerPrompt: 4 },
      tinker: { url: service.url, lora: { rank: 8 }, ...tinker },
    },
    files,
  })
const gaps = ({ curve }: RunReport) => curve.map(({ metrics }) => metrics['maxLogprobDifference'] ?? 0)

test.each(['local', 'tinker'])(
  'the same project learns with %s, and every token is accounted for',
  async (trainEngineName) => {
    const trainer = await openTrainer(await project(6), { trainEngineName })
    const report = await trainer.train()
    expect(report.status).toBe('finished')
    expect(report.engine).toBe(trainEngineName)
    expect(report.after!.reward).toBeGreaterThan(report.before!.reward + 0.2)
    expect(Math.max(...gaps(report))).toBeLessThanOrEqual(1e-4)
    expect(report.ledger).toMatchObject({ unexplained: 0 })
    expect(report.ledger?.trained).toBeGreaterThan(0)
  },
  120_000,
)

test('a run that was stopped goes on from the checkpoint that its pointer names', async () => {
  const files = await project(2)
  const stop = new AbortController()
  const stopped = await openTrainer(files, {
    trainEngineName: 'tinker',
    onEvent(event) {
      if (event.type === 'step-start' && event.step === 2) stop.abort(new Error('enough'))
    },
  })
  expect((await stopped.train<RunReport>(stop.signal)).status).toBe('stopped')
  const [run] = await files.runs()
  const pointer = JSON.parse(await readFile(join(run!, 'checkpoints/step-000001/tinker.json'), 'utf8')) as object
  expect(pointer).toMatchObject({ service: service.url, rank: 8, path: expect.stringMatching(/^tinker:\/\/.+\/weights\//) })
  expect(JSON.stringify([pointer, await readFile(join(run!, 'final_trainer.yaml'), 'utf8')])).not.toContain('tml-test')
  const report = await (await openTrainer(files, { trainEngineName: 'tinker' })).train()
  expect(await files.runs()).toEqual([run])
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2])
  expect(Math.max(...gaps(report))).toBeLessThanOrEqual(1e-4)
  expect(report.ledger).toMatchObject({ unexplained: 0 })
  const loads = service.calls.filter(({ name }) => name === 'load_weights')
  expect(loads.at(-1)?.json).toMatchObject({ path: expect.stringContaining('tinker://'), optimizer: true })
})

test('eval --model samples the weights that a run left at the service', async () => {
  const files = await project(6)
  const { before } = await (await openTrainer(files, { trainEngineName: 'tinker' })).train<RunReport>()
  const [run] = (await files.runs()) as [string]
  const evaluate = async (checkpoint: string) => {
    const arguments_ = ['eval', files.folder, '--model', checkpoint, '--json', '--run-path', join(folder, 'evaluations')]
    const { code, stdout, stderr } = await runCli(arguments_, { env: { TINKER_API_KEY: 'tml-test' } })
    expect(code, stdout + stderr).toBe(0)
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; metrics?: Record<string, number> })
    return events.find(({ type }) => type === 'evaluation-end')!.metrics!['reward']!
  }
  expect(await evaluate(run)).toBeGreaterThan(before!.reward + 0.2)
  expect(await evaluate(join(run, 'checkpoints/step-000000'))).toBeLessThan(before!.reward + 0.2)
}, 300_000)

test.each([
  ['get_server_capabilities', false],
  ['create_model', true],
  ['save_weights_for_sampler', true],
  ['asample', true],
  ['forward_backward', false],
  ['forward_backward', true],
  ['optim_step', true],
  ['save_weights', true],
])(
  'a training ends when it is stopped, whatever it waits for: %s, its result %s',
  async (name, isResult) => {
    const files = await project(2)
    const stop = new AbortController()
    let stoppedAt = Number.NaN
    service.intercept((call) => {
      if (isResult ? call.name !== 'retrieve_future' || call.future !== name : call.name !== name) return null
      if (!stop.signal.aborted) stoppedAt = performance.now()
      stop.abort(new Error('enough'))
      return 'hang'
    })
    try {
      const trainer = await openTrainer(files, { trainEngineName: 'tinker' })
      const status = await trainer.train<RunReport>(stop.signal).then(
        (report) => report.status,
        (error: Error) => error.message,
      )
      expect(['stopped', 'enough']).toContain(status)
      // It takes some 100 ms on a quiet machine, and a result may take 15 minutes.
      expect(performance.now() - stoppedAt).toBeLessThan(30_000)
    } finally {
      service.intercept(null)
    }
  },
  60_000,
)

test.each([
  ['a term that the protocol lacks', { training: { klCoefficient: 0.1 } }, 'training.klCoefficient is 0.1'],
  ['a clip of the gradient', { training: { maxGradNorm: 1 } }, 'training.maxGradNorm is 1'],
  ['a temperature that it cannot score', { sampling: { temperature: 0.7 } }, 'sampling.temperature is 0.7'],
  ['a key that there is not', { lora: { rnak: 8 } }, 'Did you mean "rank"?'],
])('%s is refused before a run begins', async (_, tinker, message) => {
  const files = await project(2, tinker)
  const trainer = await openTrainer(files, { trainEngineName: 'tinker' })
  await expect(trainer.train()).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) })
  expect(await files.runs()).toEqual([])
})

test('doctor says where the service is, what it is, and whose wire is spoken', async () => {
  const env = { TINKER_BASE_URL: service.url, TINKER_API_KEY: 'tml-test' }
  const { code, stdout, stderr } = await runCli(['doctor', '--engine', 'tinker'], { env })
  expect(code, stdout + stderr).toBe(0)
  expect(stdout).toMatch(
    new RegExp(`Tinker double 1 at ${service.url}, which trains tiny; the wire is that of the tinker SDK \\d+\\.\\d+\\.\\d+`),
  )
})

test('a service that is not there leaves no run', async () => {
  const files = await project(2, { url: 'http://127.0.0.1:9', patienceMs: 200 })
  const trainer = await openTrainer(files, { trainEngineName: 'tinker' })
  await expect(trainer.train()).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE' })
  expect(await files.runs()).toEqual([])
})
