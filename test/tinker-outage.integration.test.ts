// A Tinker service that goes away in the middle of a run: the double of it, whose adapters are embedded policies.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RolloutContext, RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer } from 'aworld-train'
import OpenAI from 'openai'
import { expect, it, onTestFinished } from 'vitest'
import { openTinkerService } from './support/tinker-service.ts'
import { makeTinyModel } from './support/tiny-model.ts'

/** As agents do, with a client that repeats what fails. */
async function agent(task: { readonly input: unknown }, { policy, signal, rollout }: RolloutContext): Promise<string> {
  const { baseUrl, apiKey, model } = policy()
  const client = new OpenAI({ baseURL: baseUrl, apiKey })
  await client.chat.completions.create({ model, messages: [{ role: 'user', content: String(task.input) }] }, { signal })
  return rollout
}

const curveOf = ({ curve }: RunReport) =>
  curve.map(({ step, reward, metrics }) => [step, reward, metrics['loss'], metrics['trainedTokens']])

it('a service that dies in a step ends the run after its patience, with one message, and the resumed run has the curve of one without', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-outage-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const model = await makeTinyModel(join(folder, 'model'))
  const service = await openTinkerService(model, { maxModels: 20 })
  onTestFinished(() => service[Symbol.asyncDispose]())

  async function run(name: string, onEvent: (event: RunEvent) => void = () => {}): Promise<RunReport> {
    const trainer = new AgentTrainer({
      name,
      agent,
      trainDataset: Array.from({ length: 4 }, (_, index) => ({ id: `task-${index}`, prompt: `Is ${index} even?`, answer: 'yes' })),
      rewardFunc: (_source: unknown, answer: string) => Number(answer.at(-1)) % 2,
      trainEngineName: 'tinker',
      config: {
        model: { path: model },
        tinker: { url: service.url, patienceMs: 5_000 },
        training: { steps: 3, promptsPerStep: 2, samplesPerPrompt: 8, checkpointEvery: 1, learningRate: 1e-2 },
        sampling: { maxTokens: 6 },
        concurrency: 8,
      },
      seed: 3,
      runPath: join(folder, name),
      onEvent,
    })
    return await trainer.train()
  }

  const warnings: string[] = []
  let sampled = 0
  let isDead = false
  service.intercept(({ name }) => {
    if (isDead && name === 'asample') sampled++
    isDead ||= name === 'asample' && ends >= 4
    return isDead ? 'drop' : null
  })
  let ends = 0
  let step = 0
  const broken = run('outage', (event) => {
    if (event.type === 'step-start') step = event.step
    if (event.type === 'rollout-end' && step === 2 && event.split === 'train') ends++
    if (event.type === 'warning-raised') warnings.push(event.message)
  })
  await expect(broken).rejects.toMatchObject({
    code: 'POLICY_UNAVAILABLE',
    message: expect.stringContaining('did not answer asample for 5 s'),
  })
  expect(warnings.filter((message) => /tried again|did not answer/.test(message))).toEqual([])
  // Four questions in the patience of each of eight calls; a client that repeats them, or a second attempt, would ask far more.
  expect(sampled).toBeLessThanOrEqual(40)
  isDead = false
  ends = -100
  const resumed = await run('outage')
  expect(resumed).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(curveOf(resumed)).toEqual(curveOf(await run('whole')))
  const record = readRun(resumed.path)
  onTestFinished(() => record.close())
  expect([...record.episodes()].filter(({ stopReason }) => stopReason !== 'completed')).toEqual([])
})
