import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, type AgentConfigOptions, defineAgents, Swarm } from '@aworld-train/agent'
import { chatMlTemplate } from '@aworld-train/chat'
import type { RunReport } from '@aworld-train/core'
import { createVocabularyTokenizer, initModel } from '@aworld-train/engines/local'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'
import type { AgentTrainerOptions } from '../agent-trainer-options.ts'
import type { LocalTrainer } from './local-trainer.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-policies-'))
  for (const name of ['lead', 'reader']) {
    mkdirSync(join(folder, name))
    // The checks require a folder with a config.json; only a run reads the model.
    writeFileSync(join(folder, name, 'config.json'), '{}')
  }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const agentOf = (name: string, conf: AgentConfigOptions = { llmProvider: 'policy', llmModelName: name }) =>
  new Agent({ name, maxTurns: 1, conf })
const both = { lead: { path: './lead' }, reader: { path: './reader' } }

const create = (config: object, { agent = new Swarm(agentOf('lead'), agentOf('reader')), ...changes }: Partial<AgentTrainerOptions> = {}) =>
  AgentTrainer.create({
    agent,
    trainDataset: [{ id: 'c', prompt: 'Is 4 even?', answer: 'yes' }],
    rewardFunc: () => 1,
    config,
    baseDirectory: folder,
    trainEngineName: 'local',
    ...changes,
  })

/** The one problem of a configuration, or of its agents. */
async function problemOf(config: object, changes: Partial<AgentTrainerOptions> = {}): Promise<string> {
  const error = await create(config, changes).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
  const { message } = error as Error
  expect(message).not.toContain('\n')
  return message
}

it('takes two policies, each asked for by its agent', async () => {
  await create({ policies: both })
})

describe('refuses', () => {
  it('a policy that nobody asks for', async () => {
    const agent = new Swarm(agentOf('lead'), agentOf('second', { llmProvider: 'policy', llmModelName: 'lead' }))
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^No agent asks for policies\.reader; name it in the llmModelName/)
  })

  it.each([
    ['asks for it without training it', { lead: { policy: 'lead', trainable: false }, reader: { policy: 'reader' } }],
    ['has it as its model', { lead: { model: 'lead' }, reader: { policy: 'reader' } }],
  ])('a policy to train whose one agent %s', async (_, agents) => {
    const agent = defineAgents(agents, async () => 'yes')
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^policies\.lead is trained, and no agent that is trained asks for it; /)
  })

  it('an agent of a function that is not trained and asks for nothing', async () => {
    const agent = defineAgents({ lead: { policy: 'lead' }, reader: { policy: 'reader' }, critic: { trainable: false } }, async () => 'yes')
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^Agent "critic" asks for no policy; /)
  })

  it('a policy that is not there, and names the one that was meant', async () => {
    const agent = new Swarm(agentOf('lead'), agentOf('reader'), agentOf('third', { llmProvider: 'policy', llmModelName: 'raeder' }))
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^Agent "third".*"raeder".*"lead", "reader".*Did you mean "reader"/)
  })

  it('a folder that is not there', async () => {
    expect(await problemOf({ policies: { ...both, reader: { path: './raeder' } } })).toMatch(
      /raeder is not there; correct policies\.reader\.path/,
    )
  })

  it.each(['./lead', './reader/../lead/', './link'])('two paths of one folder: %s', async (path) => {
    symlinkSync(join(folder, 'lead'), join(folder, 'link'), 'dir')
    expect(await problemOf({ policies: { ...both, reader: { path } } })).toMatch(
      /^policies\.lead and policies\.reader are the folder .*lead;/,
    )
  })

  it('policies of which none is trained', async () => {
    const frozen = Object.fromEntries(Object.entries(both).map(([name, policy]) => [name, { ...policy, trainable: false }]))
    expect(await problemOf({ policies: frozen })).toMatch(/^No policy is trained; set trainable of one/)
    await create({ policies: { ...frozen, lead: both.lead } })
  })

  it('an agent with a policy and an address', async () => {
    const reader = agentOf('reader', { llmProvider: 'policy', llmModelName: 'reader', llmBaseUrl: 'http://127.0.0.1:9/v1' })
    const third = agentOf('third', { llmProvider: 'policy', llmModelName: 'reader' })
    const agent = new Swarm(agentOf('lead'), reader, third)
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^Agent "reader" asks for no policy; .*without an llmBaseUrl/)
    await create({ model: both.lead }, { agent })
  })

  it('an agent with a policy and a model', async () => {
    const agent = defineAgents({ lead: { policy: 'lead' }, reader: { policy: 'reader', model: 'judge' } }, async () => 'yes')
    const models = { judge: { baseUrl: 'http://127.0.0.1:9/v1', model: 'large' } }
    expect(await problemOf({ policies: both, models }, { agent })).toMatch(/^Agent "reader" has the policy "reader" and the model "judge"/)
  })

  it('an agent that asks for none, which with one model is trained', async () => {
    const agent = new Swarm(agentOf('lead'), agentOf('reader'), new Agent({ name: 'third' }))
    expect(await problemOf({ policies: both }, { agent })).toMatch(/^Agent "third" asks for no policy; set llmProvider to "policy"/)
    await create({ model: both.lead }, { agent })
  })

  it('a function, and names what tells its agents apart', async () => {
    const policies = { lead: both.lead }
    const error = await create({ policies }, { agent: async () => 'yes' }).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('Agent "agent" asks for no policy; name its agents with defineAgents, each with one of "lead"')
  })

  it('model and policies together', async () => {
    expect(await problemOf({ model: both.lead, policies: both })).toMatch(/^model and policies are both set/)
    expect(await problemOf({ model: { history: 'template' }, policies: both })).toMatch(/^model and policies are both set/)
  })

  it('one model in place of several', async () => {
    expect(await problemOf({ policies: both }, { model: join(folder, 'lead') })).toMatch(/^One model is named .*"lead", "reader"/)
  })

  it('a start from scratch without a warm-up', async () => {
    expect(await problemOf({ policies: both }, { fromScratch: true })).toMatch(/^No policy has a warm-up to start from/)
    const reader = { ...both.reader, warmUp: './warm-up.ts#warmUp' }
    await create({ policies: { ...both, reader } }, { fromScratch: true })
  })

  it('a learning rate of a policy over a schedule of 0', async () => {
    const policies = { ...both, reader: { ...both.reader, learningRate: 1e-3 } }
    expect(await problemOf({ policies, training: { learningRate: 0 } })).toMatch(/^policies\.reader\.learningRate follows/)
  })

  it.each(['', '.', '..', '../x', 'a/b', 'a\\b', '.hidden', 'x'.repeat(129)])('a name that no folder can have: %j', async (name) => {
    const policies = { [name]: both.reader }
    expect(await problemOf({ policies }, { agent: async () => 'yes' })).toContain('its name must be letters, digits')
  })

  it('a policy with the name of a frozen model', async () => {
    const models = { reader: { baseUrl: 'http://127.0.0.1:9/v1', model: 'large' } }
    expect(await problemOf({ policies: both, models })).toMatch(
      /^models\.reader has the name of a policy; give the frozen model another name/,
    )
  })
})

it('takes policies of one folder for a Tinker service, which has the weights, and makes none for it', async () => {
  const one = { ...both, reader: both.lead }
  await create({ policies: one, tinker: { url: 'http://127.0.0.1:9' } }, { trainEngineName: 'tinker' })
  const made = { ...both, reader: { warmUp: './warm-up.ts#warmUp' } }
  expect(await problemOf({ policies: made }, { trainEngineName: 'tinker' })).toMatch(/^A Tinker service .*in policies\.reader\.path\.$/)
})

it('gives each agent its policy as its model, and trains it where both say so', async () => {
  const agent = defineAgents(
    { lead: { policy: 'lead' }, second: { policy: 'lead', trainable: false }, reader: { policy: 'reader' }, judge: { model: 'judge' } },
    async () => 'yes',
  )
  const models = { judge: { baseUrl: 'http://127.0.0.1:9/v1', model: 'large' } }
  const trainer = await create({ policies: { ...both, reader: { ...both.reader, trainable: false } }, models }, { agent })
  const { agents } = (trainer.trainProcessor as LocalTrainer).plan!.program
  expect(agents.map(({ name, model, trainable }) => [name, model, trainable])).toEqual([
    ['lead', 'lead', true],
    ['second', 'lead', false],
    ['reader', 'reader', false],
    ['judge', 'judge', false],
  ])
})

it('takes any llmModelName where there is one model', async () => {
  await create({ model: both.lead }, { agent: agentOf('lead', { llmProvider: 'policy', llmModelName: 'anything' }) })
})

/** A model of a few thousand weights whose vocabulary has these words. */
async function initSmallModel(name: string, words: readonly string[]): Promise<void> {
  rmSync(join(folder, name), { recursive: true })
  const pieces = ['system\n', 'user\n', 'assistant\n', 'tool\n', ...words]
  await initModel(join(folder, name), {
    config: {
      hiddenSize: 16,
      layers: 1,
      heads: 2,
      kvHeads: 1,
      headDim: 8,
      intermediateSize: 32,
      ropeTheta: 10_000,
      rmsNormEps: 1e-6,
      tieWordEmbeddings: true,
      qkNorm: true,
      contextLength: 256,
    },
    tokenizer: createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces }),
    chatTemplate: chatMlTemplate,
    seed: 5,
  })
}

it('trains agents of a function by the policies that defineAgents gives them, each with a vocabulary of its own', async () => {
  await initSmallModel('lead', ['Is ', ' even?', 'yes', 'no'])
  await initSmallModel('reader', ['one', 'two', 'three', 'four', 'five', ' six'])
  let scored = 0
  const agent = defineAgents({ lead: { policy: 'lead' }, reader: { policy: 'reader' } }, async (_task, { policy, signal }) => {
    const ask = async (name: string, content: string) => {
      const { baseUrl, apiKey, model } = policy(name)
      const body = JSON.stringify({ model, messages: [{ role: 'user', content }] })
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` }
      const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body, signal })
      return JSON.stringify(await response.json())
    }
    await ask('reader', 'one two')
    return await ask('lead', 'Is 4 even?')
  })
  const config = {
    policies: both,
    engine: { threads: 2, simd: 'plain' },
    sampling: { maxTokens: 6 },
    // Weights that are drawn at random seldom end an answer.
    reward: { unfinished: 'score' },
    training: { promptsPerStep: 1, samplesPerPrompt: 2, learningRate: 0.01 },
    evaluation: { before: false, greedy: false },
    concurrency: 1,
  }
  const options = { agent, rewardFunc: () => scored++ % 2, steps: 1, seed: 3, runPath: join(folder, 'runs'), onEvent: () => {} }
  const trainer = await create(config, options)
  const report = await trainer.train<RunReport>()
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  const metrics = report.curve[0]!.metrics!
  expect(metrics['policy/lead/trainedTokens']).toBeGreaterThan(0)
  expect(metrics['policy/reader/trainedTokens']).toBeGreaterThan(0)
  expect(metrics['policy/lead/trainedTokens']! + metrics['policy/reader/trainedTokens']!).toBe(report.ledger?.trained)
})
