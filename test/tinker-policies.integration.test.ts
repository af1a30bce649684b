// Two policies at one Tinker service, each an adapter of its own: the double of it, whose adapters are embedded policies.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, AgentTrainer, type RunEvent, type RunReport, Swarm } from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { openTinkerService } from './support/tinker-service.ts'
import { makeTinyModel } from './support/tiny-model.ts'

/** A service, and trainings over it of two agents, whose policies have one folder for their tokenizer. */
async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-tinker-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const model = await makeTinyModel(join(folder, 'model'))
  // A checkpoint is loaded into adapters beside those at work, which are unloaded when all are loaded.
  const service = await openTinkerService(model, { maxModels: 4 })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const agentOf = (name: string) => new Agent({ name, maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: name } })

  async function train(name: string, reader: object = {}, options: { onEvent?: (event: RunEvent) => void; signal?: AbortSignal } = {}) {
    const trainer = new AgentTrainer({
      name,
      agent: new Swarm(agentOf('reader'), agentOf('lead')),
      trainDataset: Array.from({ length: 4 }, (_, index) => ({ id: `task-${index}`, prompt: `Is ${index} even?`, answer: 'yes' })),
      rewardFunc: (_source: unknown, answer: string, truth: string) => Number(answer === truth),
      trainEngineName: 'tinker',
      config: {
        policies: { lead: { path: model }, reader: { path: model, ...reader } },
        tinker: { url: service.url, lora: { rank: 8 } },
        training: { steps: 3, promptsPerStep: 2, samplesPerPrompt: 8, checkpointEvery: 1, learningRate: 1e-2 },
        sampling: { maxTokens: 6 },
        evaluation: { before: false, greedy: false },
        concurrency: 8,
      },
      seed: 3,
      runPath: join(folder, name),
      onEvent: options.onEvent ?? (() => {}),
    })
    return await trainer.train<RunReport>(options.signal)
  }

  /** What a checkpoint says of the adapter of a policy. */
  const pointerOf = async ({ path }: RunReport, step: number, policy: string): Promise<{ path: string; weightVersion: number }> =>
    JSON.parse(await readFile(join(path, 'checkpoints', `step-00000${step}`, policy, 'tinker.json'), 'utf8'))

  return { service, train, pointerOf }
}

const adapterOf = (path: unknown) => /^tinker:\/\/([^/]+)\//.exec(String(path))![1]!
const curveOf = ({ curve }: RunReport) =>
  curve.map(({ step, reward, metrics }) => [step, reward, metrics['policy/lead/loss'], metrics['policy/reader/loss']])

it('each has an adapter, samplers and checkpoints of its own, and a resumed run has the curve of one without a stop', async () => {
  const { service, train, pointerOf } = await open()
  const whole = await train('whole')
  expect(whole).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(service.calls.filter(({ name }) => name === 'create_model')).toHaveLength(2)
  expect(service.models()).toBe(0)
  const [lead, reader] = [await pointerOf(whole, 3, 'lead'), await pointerOf(whole, 3, 'reader')]
  expect(adapterOf(lead.path)).not.toBe(adapterOf(reader.path))
  // A version of one is a version of the other.
  expect(lead.weightVersion).toBe(reader.weightVersion)
  const sampled = service.calls.filter(({ name }) => name === 'asample').map(({ json }) => json['model_path'])
  const adapters = new Set([adapterOf(lead.path), adapterOf(reader.path)])
  expect(new Set(sampled.map(adapterOf))).toEqual(adapters)
  // The start, and the weights after each of the steps that were sampled from.
  for (const adapter of adapters) expect(new Set(sampled.filter((path) => adapterOf(path) === adapter)).size).toBe(3)
  for (const { metrics } of whole.curve) {
    expect(metrics['policy/lead/trainedTokens']).toBeGreaterThan(0)
    expect(metrics['policy/reader/trainedTokens']).toBeGreaterThan(0)
    // Logprobs of tokens are asked of the adapter that drew them.
    expect(metrics['maxLogprobDifference']).toBeLessThanOrEqual(1e-4)
  }

  const stop = new AbortController()
  const stopped = await train(
    'stopped',
    {},
    { signal: stop.signal, onEvent: (event) => event.type === 'step-end' && event.step === 2 && stop.abort() },
  )
  expect(stopped).toMatchObject({ status: 'stopped', ledger: { unexplained: 0 } })
  const resumed = await train('stopped')
  expect(resumed).toMatchObject({ status: 'finished', path: stopped.path, ledger: { unexplained: 0 } })
  const loads = service.calls.filter(({ name }) => name === 'load_weights').map(({ json }) => json['path'])
  expect(loads.slice(-2).toSorted()).toEqual(
    [(await pointerOf(stopped, 2, 'lead')).path, (await pointerOf(stopped, 2, 'reader')).path].toSorted(),
  )
  expect(curveOf(resumed)).toEqual(curveOf(whole))
})

it('a policy that is not trained is sampled, and neither trained nor saved', async () => {
  const { service, train, pointerOf } = await open()
  const report = await train('frozen', { trainable: false })
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(await readdir(join(report.path, 'checkpoints', 'step-000003'))).toEqual(['lead'])
  const lead = adapterOf((await pointerOf(report, 3, 'lead')).path)
  const adaptersOf = (call: string) => service.calls.filter(({ name }) => name === call).map(({ json }) => json['model_id'])
  expect(new Set(adaptersOf('optim_step'))).toEqual(new Set([lead]))
  expect(new Set(adaptersOf('save_weights'))).toEqual(new Set([lead]))
  const sampled = service.calls.filter(({ name }) => name === 'asample').map(({ json }) => json['model_path'])
  expect(new Set(sampled.filter((path) => adapterOf(path) !== lead)).size).toBe(1)
})
