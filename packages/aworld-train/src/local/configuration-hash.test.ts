import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'
import type { AgentTrainerOptions } from '../agent-trainer-options.ts'
import { configurationHash, inputHashes } from './configuration-hash.ts'
import type { LocalTrainer } from './local-trainer.ts'
import type { LocalPlan } from './plan.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-hash-'))
  mkdirSync(join(folder, 'model'))
  const files = {
    'agent.ts': 'export const agent = async () => "yes"\n',
    'agent.yaml': '- name: agent\n  _target_: ./agent.ts#agent\n',
    'reward.ts': 'export const reward = () => 1\n',
    'warm-up.ts': 'export const warmUp = async () => {}\n',
    'model/config.json': '{}',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const hashOf = async (changes?: Partial<AgentTrainerOptions>) => configurationHash(await planOf(changes))
const inputsOf = async (changes?: Partial<AgentTrainerOptions>) => inputHashes(await planOf(changes))

async function planOf(changes: Partial<AgentTrainerOptions> = {}): Promise<LocalPlan> {
  const trainer = await AgentTrainer.create({
    agent: './agent.yaml',
    trainDataset: [{ id: 'task-1', prompt: 'Is 4 even?', answer: 'yes' }],
    rewardFunc: './reward.ts#reward',
    config: { model: { warmUp: './warm-up.ts#warmUp' } },
    baseDirectory: folder,
    trainEngineName: 'local',
    ...changes,
  })
  return (trainer.trainProcessor as LocalTrainer).plan!
}

it.each([
  ['agent.ts', '// another agent\n'],
  ['agent.yaml', '# another agent\n'],
  ['reward.ts', '// another reward\n'],
  ['warm-up.ts', '// another warm-up\n'],
])('changes with the bytes of %s', async (name, text) => {
  const before = await hashOf()
  expect(await hashOf()).toBe(before)
  appendFileSync(join(folder, name), text)
  expect(await hashOf()).not.toBe(before)
})

it('is made of inputs with names, so that a refusal to resume says which has changed', async () => {
  const before = await inputsOf()
  appendFileSync(join(folder, 'reward.ts'), '// another reward\n')
  const config = { model: { warmUp: './warm-up.ts#warmUp' }, sampling: { maxTokens: 2 } }
  const now = await inputsOf({ config, trainDataset: [{ id: 'task-1', prompt: 'Is 4 even?', answer: 'no' }] })
  const changed = Object.keys(now).filter((name) => now[name] !== before[name])
  expect(changed.toSorted()).toEqual(['the reward', 'the setting sampling', 'the training tasks'])
})

it('does not change with a warm-up that makes no model', async () => {
  const config = { model: { path: './model', warmUp: './warm-up.ts#warmUp' } }
  const before = await hashOf({ config })
  appendFileSync(join(folder, 'warm-up.ts'), '// another warm-up\n')
  expect(await hashOf({ config })).toBe(before)
})

it('does not change with where numbers are logged and read', async () => {
  const config = { model: { warmUp: './warm-up.ts#warmUp' } }
  expect(await hashOf({ config: { ...config, logging: ['tensorboard'], projectName: 'gaia', gateway: { port: 9_464 } } })).toBe(
    await hashOf({ config }),
  )
})

it('changes with what becomes of the calls of agents', async () => {
  const config = { model: { warmUp: './warm-up.ts#warmUp' } }
  const hashes = [{}, { trainedCalls: 'all' }, { hostedTools: 'refuse' }, { ignore: ['^Today'] }, { trainedCalls: () => true }].map(
    (gateway) => hashOf({ config: { ...config, gateway } }),
  )
  expect(new Set(await Promise.all(hashes)).size).toBe(5)
})

it('changes with the bytes of a loss, its path, and the text of one that is a function', async () => {
  writeFileSync(join(folder, 'loss.ts'), 'export const mean = () => []\nexport const sum = () => []\n')
  const withLoss = (loss: unknown) => ({ config: { model: { warmUp: './warm-up.ts#warmUp' }, training: { loss } } })
  const losses = [null, './loss.ts#mean', './loss.ts#sum', () => [], () => [0]]
  const hashes = await Promise.all(losses.map((loss) => hashOf(withLoss(loss))))
  expect(new Set(hashes).size).toBe(5)
  const before = await inputsOf(withLoss('./loss.ts#mean'))
  appendFileSync(join(folder, 'loss.ts'), '// another loss\n')
  const now = await inputsOf(withLoss('./loss.ts#mean'))
  expect(Object.keys(now).filter((name) => now[name] !== before[name])).toEqual(['the loss'])
})

it('says nothing of an agent and a reward that are objects', async () => {
  const [first, second] = [0, 1].map((value) => ({ agent: async () => String(value), rewardFunc: () => value }))
  expect(await hashOf(first)).toBe(await hashOf(second))
})
