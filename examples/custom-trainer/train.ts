import { fileURLToPath } from 'node:url'
import { AgentTrainer } from 'aworld-train'
import { RejectionSampling } from './rejection-sampling.ts'

/** A project as `aworld-train init` makes it; in yours, leave `baseDirectory` out. */
const project = fileURLToPath(new URL('../../packages/cli/templates/project', import.meta.url))

AgentTrainer.registerProcessor('rejection-sampling', RejectionSampling)

const trainer = new AgentTrainer({
  baseDirectory: project,
  agent: './agent.ts#agent',
  trainDataset: './data/train.jsonl',
  testDataset: './data/test.jsonl',
  rewardFunc: './reward.ts#exactAnswer',
  config: {
    model: { warmUp: './warm-up.ts#warmUp' },
    training: { samplesPerPrompt: 4, learningRate: 2e-3 },
    sampling: { maxTokens: 16 },
    limits: { maxTurns: 4 },
  },
  trainEngineName: 'rejection-sampling',
})

const { before, after, path } = await trainer.train()
console.log(`held-out reward ${before?.reward.toFixed(2)} before, ${after?.reward.toFixed(2)} after; the run is in ${path}`)
