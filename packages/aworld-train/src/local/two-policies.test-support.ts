import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, Swarm } from '@aworld-train/agent'
import type { RunEvent } from '@aworld-train/core'
import { AgentTrainer } from '../agent-trainer.ts'

const shipped = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))

/** A folder with the models `lead` and `reader`. The vocabulary of `reader` has the letters in the opposite order. */
export function makeTwoModels(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aworld-train-two-policies-'))
  for (const name of ['lead', 'reader']) cpSync(shipped, join(folder, name), { recursive: true })
  const file = join(folder, 'reader', 'tokenizer.json')
  const tokenizer = JSON.parse(readFileSync(file, 'utf8'))
  const { vocab } = tokenizer.model
  for (let letter = 0; letter < 26; letter++) vocab[String.fromCharCode(97 + letter)] = 122 - letter
  writeFileSync(file, JSON.stringify(tokenizer))
  return folder
}

export interface TwoPolicies {
  readonly folder: string
  readonly reader?: object | undefined
  readonly config?: object | undefined
  readonly steps?: number | undefined
  readonly checkpoint?: string | undefined
  readonly onEvent?: ((event: RunEvent) => void) | undefined
}

/** A trainer of two agents, `first` and `second`, each with a policy of its own. It has tests to evaluate before and after. */
export async function trainerOfTwo({
  folder,
  reader,
  config,
  steps = 2,
  checkpoint,
  onEvent = () => {},
}: TwoPolicies): Promise<AgentTrainer> {
  const agentOf = (name: string, policy: string) => new Agent({ name, maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: policy } })
  let scored = 0
  return await AgentTrainer.create({
    agent: new Swarm(agentOf('first', 'lead'), agentOf('second', 'reader')),
    trainDataset: [{ id: 'c', prompt: 'What is the symbol of iron?', answer: 'Fe' }],
    testDataset: [{ id: 't', prompt: 'What is the symbol of tin?', answer: 'Sn' }],
    rewardFunc: () => scored++ % 2,
    config: {
      policies: { lead: { path: './lead' }, reader: { path: './reader', ...reader } },
      engine: { threads: 2, simd: 'plain' },
      sampling: { maxTokens: 6 },
      training: { promptsPerStep: 1, samplesPerPrompt: 2, learningRate: 0.01, checkpointEvery: 1 },
      evaluation: { greedy: false },
      concurrency: 1,
      ...config,
    },
    baseDirectory: folder,
    seed: 3,
    steps,
    checkpoint,
    runPath: join(folder, 'runs'),
    trainEngineName: 'local',
    onEvent,
  })
}
