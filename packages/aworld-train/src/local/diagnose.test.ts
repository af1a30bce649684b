import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, Swarm } from '@aworld-train/agent'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { diagnose } from './diagnose.ts'
import { makeTwoModels } from './two-policies.test-support.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-diagnose-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('names each problem by the module that it is in', async () => {
  writeFileSync(join(folder, 'train.jsonl'), '{"prompt": "Is 4 even?"\n')
  const config = { model: { path: './no-model' }, data: { trainFiles: ['./train.jsonl'] }, reward: { path: './no-reward.ts' } }
  const definition = { agent: './no-agent.ts', testDataset: './no-test.jsonl', config, baseDirectory: folder }
  const checks = await diagnose(definition, new AbortController().signal)
  const problems = checks.filter(({ ok }) => !ok).map(({ name, message }) => [name, /[\w-]+\.(?:jsonl|ts)|no-model/.exec(message)?.[0]])
  expect(problems).toEqual([
    ['agent', 'no-agent.ts'],
    ['dataset', 'train.jsonl'],
    ['dataset', 'no-test.jsonl'],
    ['reward', 'no-reward.ts'],
    ['config', 'no-model'],
  ])
})

it('names problems of a reward given by path and of the configuration itself', async () => {
  writeFileSync(join(folder, 'reward.ts'), 'export const one = 1\n')
  const task = { id: 'a', prompt: 'Is 4 even?', answer: 'yes' }
  const definition = {
    agent: async () => 'yes',
    trainDataset: [task],
    rewardFunc: './reward.ts#two',
    config: { model: { pth: 'x' } },
    baseDirectory: folder,
  }
  const checks = await diagnose(definition, new AbortController().signal)
  expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['reward', 'config'])
})

it('asks no frozen model and adds to no recording; with recorded answers it says which one is missing', async () => {
  let calls = 0
  const server = createServer((_, response) => {
    calls += 1
    response.writeHead(500).end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const critic = new Agent({ name: 'critic', conf: { llmProvider: 'gateway', llmModelName: 'judge' } })
  const cassette = join(folder, 'judge.jsonl')
  const judge = { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, model: 'large-2026' }
  const rollout = async (settings: object) => {
    const definition = {
      agent: new Swarm(new Agent({ name: 'solver', maxTurns: 1 }), critic),
      trainDataset: [{ id: 'a', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
      rewardFunc: () => 1,
      config: {
        model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
        engine: { threads: 1, simd: 'plain' },
        sampling: { maxTokens: 4 },
        models: { judge: { ...judge, ...settings } },
      },
      baseDirectory: folder,
    }
    const checks = await diagnose(definition, new AbortController().signal)
    return checks.find(({ name }) => name === 'rollout')
  }
  try {
    expect(await rollout({})).toMatchObject({ ok: true, message: expect.stringMatching(/^left out.*models\.judge \(live\)/) })
    expect(await rollout({ mode: 'record', cassette })).toMatchObject({ ok: true, message: expect.stringContaining('(record)') })
    expect(existsSync(cassette)).toBe(false)
    writeFileSync(cassette, '')
    expect(await rollout({ mode: 'replay', cassette })).toMatchObject({
      ok: true,
      message: expect.stringMatching(/^ended early.*"judge".*judge\.jsonl.*\n.*1 turn in 1 branch/),
    })
    expect(calls).toBe(0)
  } finally {
    server.close()
  }
})

it('names a prompt that leaves the model no room to answer', async () => {
  const prompts = ['What is the symbol of iron?', 'iron '.repeat(2100)]
  const definition = {
    agent: async () => 'Fe',
    trainDataset: [{ id: 'short', prompt: prompts[0], answer: 'Fe' }],
    testDataset: [{ id: 'long', prompt: prompts[1], answer: 'Fe' }],
    rewardFunc: () => 1,
    config: {
      model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
      engine: { threads: 1, simd: 'plain' },
    },
    baseDirectory: folder,
  }
  const checks = await diagnose(definition, new AbortController().signal)
  expect(checks.find(({ name }) => name === 'prompts')).toMatchObject({
    ok: false,
    message: expect.stringMatching(/^1 of 2 prompts leaves the model no room.*task "long" has \d+ tokens, .*2048/),
  })
})

it('names instructions of an agent that leave the model no room, however short the prompts are', async () => {
  const definition = {
    agent: new Agent({ name: 'chemist', systemPrompt: 'iron '.repeat(2100) }),
    trainDataset: [{ id: 'a', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
    rewardFunc: () => 1,
    config: {
      model: { path: fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url)) },
      engine: { threads: 1, simd: 'plain' },
    },
    baseDirectory: folder,
  }
  const checks = await diagnose(definition, new AbortController().signal)
  expect(checks.filter(({ ok }) => !ok)).toEqual([
    { name: 'rollout', ok: false, message: expect.stringMatching(/ended as context-overflow: The conversation has \d+ tokens/) },
  ])
})

it('checks the template of each policy, and that agents ask for policies that are there', async () => {
  const models = makeTwoModels()
  try {
    const agentOf = (name: string, llmModelName: string) => new Agent({ name, maxTurns: 1, conf: { llmProvider: 'policy', llmModelName } })
    const checksOf = (policy: string) =>
      diagnose(
        {
          agent: new Swarm(agentOf('first', 'lead'), agentOf('second', policy)),
          trainDataset: [{ id: 'a', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
          rewardFunc: () => 1,
          config: {
            policies: { lead: { path: './lead' }, reader: { path: './reader', trainable: false } },
            engine: { threads: 2, simd: 'plain' },
            sampling: { maxTokens: 4 },
          },
          baseDirectory: models,
        },
        new AbortController().signal,
      )
    const checks = await checksOf('reader')
    expect(checks.filter(({ ok }) => !ok)).toEqual([])
    expect(checks.map(({ name }) => name)).toEqual(expect.arrayContaining(['template of lead', 'template of reader', 'prompts', 'rollout']))
    expect(checks[0]).toEqual({ name: 'agent', ok: true, message: 'first (lead) trained; second frozen' })
    const [problem] = (await checksOf('raeder')).filter(({ ok }) => !ok)
    expect(problem).toMatchObject({ name: 'config', message: expect.stringContaining('Did you mean "reader"?') })
  } finally {
    rmSync(models, { recursive: true, force: true })
  }
})
