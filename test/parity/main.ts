import { fileURLToPath } from 'node:url'
import { AgentTrainer } from 'aworld-train'

const trainer = new AgentTrainer({
  baseDirectory: fileURLToPath(new URL('.', import.meta.url)),
  agent: './agent.yaml',
  config: './grpo_trainer.yaml',
  rewardFunc: './reward.ts#exactAnswer',
  trainDataset: './data/train.jsonl',
  testDataset: './data/test.jsonl',
  trainEngineName: 'local',
})
await trainer.train()
