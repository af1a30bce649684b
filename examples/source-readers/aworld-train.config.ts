import { defineTraining } from 'aworld-train'
import { makeTasks } from './tasks.ts'

/** Trains two policies at once. An agent asks for one by its name: see `conf` in agents.ts. */
export default defineTraining({
  name: 'source-readers',
  agent: './agents.ts#planner',
  trainDataset: makeTasks(512, 1),
  testDataset: makeTasks(128, 2),
  rewardFunc: './reward.ts#rightSum',
  trainEngineName: 'local',
  config: {
    policies: {
      lead: { path: './model/lead', warmUp: './warm-up.ts#lead' },
      reader: { path: './model/reader', warmUp: './warm-up.ts#reader' },
    },
    training: {
      steps: 24,
      promptsPerStep: 16,
      samplesPerPrompt: 8,
      passes: 2,
      learningRate: 6e-4,
      warmupSteps: 3,
      finalLearningRateFraction: 0.2,
    },
    sampling: { temperature: 1, maxTokens: 32 },
    limits: { maxTurns: 20 },
    evaluation: { kindKey: 'kind' },
    concurrency: 128,
  },
})
