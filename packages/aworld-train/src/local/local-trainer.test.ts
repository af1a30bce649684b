import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, Swarm } from '@aworld-train/agent'
import { cispo, gspo, scoringContext } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'
import type { AgentTrainerOptions } from '../agent-trainer-options.ts'
import type { LocalTrainer } from './local-trainer.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-local-'))
  // The checks require a folder with a config.json; only a run reads the model.
  writeFileSync(join(folder, 'config.json'), '{}')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const options = (changes: Partial<AgentTrainerOptions> = {}): AgentTrainerOptions => ({
  agent: async () => 'yes',
  trainDataset: [{ id: 'task-1', prompt: 'Is 4 even?', answer: 'yes' }],
  rewardFunc: () => 1,
  config: { model: { path: folder } },
  baseDirectory: folder,
  trainEngineName: 'local',
  ...changes,
})

describe('validate', () => {
  it('takes a KL term: the run makes its own reference policy', async () => {
    await AgentTrainer.create(options({ config: { model: { path: folder }, training: { klCoefficient: 0.1 } } }))
  })

  it.each([
    ['./loss.ts#half', /does not export "half"/],
    ['./loss.ts#rate', /The loss \.\/loss\.ts#rate is not a function/],
    ['./other.ts#mean', /There is no module .*other\.ts/],
    ['./broken.ts', /could not be imported: no file today/],
  ])('names a loss that cannot be had: %s', async (loss, message) => {
    writeFileSync(join(folder, 'loss.ts'), 'export const mean = () => []\nexport const rate = 1\n')
    writeFileSync(join(folder, 'broken.ts'), 'throw new Error("no file today")\n')
    const create = (named: unknown) => AgentTrainer.create(options({ config: { model: { path: folder }, training: { loss: named } } }))
    await expect(create(loss)).rejects.toMatchObject({ code: 'MODULE_INVALID', message: expect.stringMatching(message) })
    await create('./loss.ts#mean')
    await create(() => [])
    await expect(create(1)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining('training.loss') })
  })

  it.each([
    [cispo(), 1, []],
    [cispo(), 2, [expect.stringContaining('training.passes is 2, and the loss is made for 1')]],
    [gspo(), 2, []],
  ])('warns where a loss is not made for so many passes', async (loss, passes, warnings) => {
    const trainer = await AgentTrainer.create(options({ config: { model: { path: folder }, training: { loss, passes } } }))
    expect((trainer.trainProcessor as LocalTrainer).plan!.warnings).toEqual(warnings)
  })

  it('names an agent that is none, and nothing else', async () => {
    await expect(AgentTrainer.create(options({ agent: {} as never }))).rejects.toMatchObject({
      code: 'AGENT_INVALID',
      message: expect.not.stringContaining('checks before'),
    })
  })

  it('names an agent whose frozen model nobody serves, the models there are, and the one that was meant', async () => {
    const critic = new Agent({ name: 'critic', conf: { llmProvider: 'gateway', llmModelName: 'lagre' } })
    const agent = new Swarm(new Agent({ name: 'solver' }), critic)
    const large = { baseUrl: 'http://127.0.0.1:9/v1', model: 'large-2026' }
    const config = { model: { path: folder }, models: { large, small: large } }
    await expect(AgentTrainer.create(options({ agent, config }))).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/^Agent "critic".*"lagre".*"large", "small".*Did you mean "large"/),
    })
    await AgentTrainer.create(options({ agent, config: { ...config, models: { ...config.models, lagre: large } } }))
  })

  it.each([
    [{ mode: 'replay' }, 'CONFIG_INVALID', /set models\.large\.cassette/],
    [{ mode: 'replay', cassette: 'not-there.jsonl' }, 'FROZEN_REPLAY_MISSING', /models\.large\.mode.*not-there\.jsonl; record the run/],
  ])('refuses %j of a frozen model before anything is made', async (recording, code, message) => {
    const large = { baseUrl: 'http://127.0.0.1:9/v1', model: 'large-2026', ...recording }
    const creating = AgentTrainer.create(options({ config: { model: { path: folder }, models: { large } } }))
    await expect(creating).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it('names the run after the first agent that is trained', async () => {
    const judge = new Agent({ name: 'judge', conf: { llmBaseUrl: 'http://127.0.0.1:9/v1', llmModelName: 'large' } })
    const trainer = await AgentTrainer.create(options({ agent: new Swarm(judge, new Agent({ name: 'solver' })) }))
    expect((trainer.trainProcessor as LocalTrainer).plan?.name).toBe('solver')
  })

  it('gives a positional reward the whole response where the configuration says so', async () => {
    const seen: string[] = []
    const rewardFunc = (_source: string, solution: string) => {
      seen.push(solution)
      return 1
    }
    const trainer = await AgentTrainer.create(
      options({ rewardFunc, config: { model: { path: folder }, reward: { input: 'full-response' } } }),
    )
    const plan = (trainer.trainProcessor as LocalTrainer).plan!
    const reward = await plan.createReward()
    const task = plan.train.tasks[0]!
    const messages = [
      { role: 'user' as const, content: 'Is 4 even?' },
      { role: 'tool' as const, content: 'from a tool' },
      { role: 'assistant' as const, content: 'yes' },
    ]
    const episode = { answer: 'yes', messages, taskId: task.id } as never
    await reward.score({ task, episode, answer: plan.train.answers.get(task.id)! }, scoringContext(new AbortController().signal))
    expect(seen).toEqual([expect.stringContaining('from a tool')])
  })
})

it('says what to do when there is no model to run yet', async () => {
  const trainer = await AgentTrainer.create(options({ config: { model: { warmUp: './warm-up.ts#warmUp' } } }))
  await expect(trainer.inference([{ id: 'a', prompt: 'Is 4 even?', answer: 'yes' }])).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('Train first'),
  })
})

it('runs no inference on training data where there is no test set', async () => {
  const trainer = await AgentTrainer.create(options())
  await expect(trainer.inference()).rejects.toMatchObject({
    code: 'DATASET_INVALID',
    message: expect.stringContaining('nothing to evaluate'),
  })
})

it('takes the test set that the configuration names, and its prompt column, for inference', async () => {
  writeFileSync(join(folder, 'test.jsonl'), '{"id": "a", "question": "Is 4 even?", "answer": "yes"}\n')
  const data = { testFiles: ['test.jsonl'], promptKey: 'question' }
  const trainDataset = [{ id: 'task-1', question: 'Is 6 even?', answer: 'yes' }]
  const trainer = await AgentTrainer.create(options({ trainDataset, config: { model: { warmUp: './warm-up.ts#warmUp' }, data } }))
  // There is no model yet, so both stop after the dataset, which they have read.
  await expect(trainer.inference()).rejects.toThrow('There is no model yet')
  await expect(trainer.inference([{ id: 'b', question: 'Is 8 even?' }])).rejects.toThrow('There is no model yet')
})
