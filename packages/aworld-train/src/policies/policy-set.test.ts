import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, Swarm } from '@aworld-train/agent'
import { readRun } from '@aworld-train/store'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { AgentTrainer } from '../agent-trainer.ts'

const shipped = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-policies-'))
  for (const name of ['lead', 'reader']) cpSync(shipped, join(folder, name), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const agentOf = (name: string, policy: string) => new Agent({ name, maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: policy } })

async function train(policies: Record<string, object>) {
  let scored = 0
  const first = agentOf('first', 'lead')
  const second = agentOf('second', 'reader')
  const trainer = await AgentTrainer.create({
    agent: new Swarm(first, second),
    trainDataset: [{ id: 'c', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
    rewardFunc: () => scored++ % 2,
    config: {
      policies,
      engine: { threads: 2, simd: 'plain' },
      sampling: { maxTokens: 6 },
      training: { promptsPerStep: 1, samplesPerPrompt: 2, learningRate: 0.01, checkpointEvery: 1 },
      evaluation: { before: false, greedy: false },
      concurrency: 1,
    },
    baseDirectory: folder,
    seed: 3,
    steps: 2,
    runPath: join(folder, 'runs'),
    trainEngineName: 'local',
    onEvent: () => {},
  })
  return await trainer.train()
}

it('trains two policies, each on the tokens of its own agents', async () => {
  const report = await train({ lead: { path: './lead' }, reader: { path: './reader', learningRate: 0.02 } })
  expect(report.ledger).toMatchObject({ unexplained: 0 })
  expect(report.policies).toMatchObject({
    lead: { model: join(folder, 'lead'), trainable: true },
    reader: { model: join(folder, 'reader'), trainable: true },
  })
  expect(readdirSync(join(report.path, 'checkpoints', 'step-000002')).toSorted()).toEqual(['lead', 'reader'])
  const weights = (path: string) => readFileSync(join(path, 'model.safetensors'))
  for (const name of ['lead', 'reader'])
    expect(weights(join(report.path, 'checkpoints', 'step-000002', name)).equals(weights(join(folder, name)))).toBe(false)
  const run = readRun(report.path)
  try {
    const [episode] = [...run.episodes({ split: 'train' })]
    expect(episode?.trajectories.map(({ agent, policy, trainable }) => ({ agent, policy, trainable }))).toEqual([
      { agent: 'first', policy: 'lead', trainable: true },
      { agent: 'second', policy: 'reader', trainable: true },
    ])
  } finally {
    run.close()
  }
  expect(report.curve[0]?.metrics).toMatchObject({
    'policy/lead/trainedTokens': expect.any(Number),
    'policy/reader/gradNorm': expect.any(Number),
  })
})
