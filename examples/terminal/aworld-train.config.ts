import { defineTraining } from 'aworld-train'
import { makeTasks } from './tasks.ts'

export default defineTraining({
  agent: './agent.ts#agent',
  trainDataset: makeTasks(96, 1),
  testDataset: makeTasks(32, 2),
  rewardFunc: './reward.ts#exactAnswer',
  trainEngineName: 'local',
  config: {
    model: { warmUp: './warm-up.ts#warmUp' },
    training: {
      steps: 12,
      promptsPerStep: 8,
      samplesPerPrompt: 8,
      passes: 2,
      learningRate: 2e-3,
      warmupSteps: 2,
      finalLearningRateFraction: 0.2,
    },
    sampling: { maxTokens: 16 },
    limits: { maxTurns: 4 },
    evaluation: { samplesPerPrompt: 2 },
    concurrency: 16,
  },
})
