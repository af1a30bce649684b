import { defineTraining } from 'aworld-train'
import { makeTasks } from './tasks.ts'

export default defineTraining({
  agent: './agents.ts#lead',
  trainDataset: makeTasks(512, 1),
  testDataset: makeTasks(96, 2),
  rewardFunc: './reward.ts#rightSum',
  trainEngineName: 'local',
  config: {
    model: { warmUp: './warm-up.ts#warmUp' },
    training: {
      steps: 20,
      promptsPerStep: 16,
      samplesPerPrompt: 8,
      passes: 2,
      learningRate: 1e-3,
      warmupSteps: 3,
      finalLearningRateFraction: 0.2,
    },
    sampling: { maxTokens: 32 },
    limits: { maxTurns: 20 },
    evaluation: { kindKey: 'kind' },
  },
})
