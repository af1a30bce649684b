import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentTrainer, LocalTrainer, type RunEvent, toTrainingSamples } from 'aworld-train'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTinyModel } from '../../test/support/tiny-model.ts'
import { makeProject, openTrainer, type TinyProject } from '../../test/support/tiny-project.ts'
import { pair, TwoPolicyTrainer } from './two-policies.ts'

const trainEngineName = 'of-a-pair'
const names = ['lead', 'reader']
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'two-policies-'))
  for (const [index, name] of names.entries()) await makeTinyModel(join(folder, name), { seed: 5 + index })
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))

async function train(project: TinyProject, processor: typeof LocalTrainer, stopAfter?: number) {
  AgentTrainer.registerProcessor(trainEngineName, processor)
  const controller = new AbortController()
  const events: RunEvent[] = []
  const onEvent = (event: RunEvent) => {
    events.push(event)
    if (event.type === 'step-end' && event.step === stopAfter) controller.abort(new Error('enough'))
  }
  const policies = Object.fromEntries(names.map((name) => [name, { path: join(folder, name) }]))
  const config = {
    policies,
    engine: { threads: 2, simd: 'plain' },
    training: { steps: 4, samplesPerPrompt: 4, checkpointEvery: 2, learningRate: 5e-3 },
    sampling: { maxTokens: 6 },
    limits: { maxTurns: 2 },
    concurrency: 4,
  }
  // A score that varies whatever tiny models say.
  const rewardFunc = (_source: string, answer: string) => (answer.length % 3) / 2
  const trainer = await openTrainer(project, { agent: pair, config, rewardFunc, trainEngineName, onEvent })
  try {
    return { report: await trainer.train(controller.signal), events }
  } catch (error) {
    if (!controller.signal.aborted) throw error
    return { report: null, events }
  } finally {
    AgentTrainer.unregisterProcessor(trainEngineName)
  }
}

const weights = (directory: string) => names.map((name) => readFileSync(join(directory, name, 'model.safetensors')).toString('base64'))

it('trains two policies in 60 lines, and goes on from a checkpoint of both as if it had not been stopped', async () => {
  const { report } = await train(await makeProject(folder, ''), TwoPolicyTrainer)
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 }, model: null })
  expect(report!.ledger!.trained).toBeGreaterThan(0)
  expect(Object.keys(report!.policies!)).toEqual(names)
  const last = (path: string) => join(path, 'checkpoints', 'last')
  expect(readdirSync(last(report!.path)).sort()).toEqual(names)
  const [lead, reader] = weights(last(report!.path))
  const [startOfLead, startOfReader] = weights(folder)
  expect([lead === startOfLead, reader === startOfReader]).toEqual([false, false])

  const project = await makeProject(folder, '')
  expect((await train(project, TwoPolicyTrainer, 3)).report).toBeNull()
  const resumed = await train(project, TwoPolicyTrainer)
  expect(resumed.events.find(({ type }) => type === 'run-start')).toMatchObject({ resumedFromStep: 3 })
  expect(resumed.report!.curve.map(({ reward }) => reward)).toEqual(report!.curve.map(({ reward }) => reward))
  expect(weights(last(resumed.report!.path))).toEqual([lead, reader])
  const code = readFileSync(new URL('two-policies.ts', import.meta.url), 'utf8')
  expect(code.split('\n').length).toBeLessThanOrEqual(60)
})

it('says which policies there are, and recomputes the logprobs of rows by them', async () => {
  class Recomputing extends LocalTrainer {
    override async train(signal?: AbortSignal) {
      await using policy = await this.openPolicy(signal)
      expect(policy.policies).toEqual({ lead: { trainable: true }, reader: { trainable: true } })
      const { learner, trainTasks } = policy
      const samples = (await policy.rollout(trainTasks)).flatMap((episode) => toTrainingSamples(episode).samples)
      expect(new Set(samples.map((sample) => sample.policy))).toEqual(new Set(names))
      const rows = samples.map(({ tokenIds }) => tokenIds)
      await expect(learner.logprobs(rows, 1)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
      const ofPolicies = samples.map((sample) => sample.policy)
      const logprobs = await learner.logprobs(rows, 1, ofPolicies)
      const difference = (found: readonly Float32Array[]) =>
        Math.max(
          ...samples.flatMap(({ lossMask, rolloutLogprobs }, row) =>
            Array.from(lossMask, (bit, at) => (bit === 1 ? Math.abs(rolloutLogprobs[at]! - found[row]![at]!) : 0)),
          ),
        )
      expect(difference(logprobs)).toBeLessThan(1e-4)
      const swapped = await learner.logprobs(
        rows,
        1,
        ofPolicies.map((name) => (name === 'lead' ? 'reader' : 'lead')),
      )
      expect(difference(swapped)).toBeGreaterThan(1e-3)
      return await policy.finish()
    }
  }
  expect((await train(await makeProject(folder, ''), Recomputing)).report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
})
