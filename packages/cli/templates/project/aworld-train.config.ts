import { defineTraining } from 'aworld-train'

export default defineTraining({
  agent: './agent.ts#agent',
  trainDataset: './data/train.jsonl',
  testDataset: './data/test.jsonl',
  rewardFunc: './reward.ts#exactAnswer',
  trainEngineName: 'local',
  config: {
    // A small policy made by the warm-up. To train a model of your own, name its folder: model: { path: './my-model' }.
    model: { warmUp: './warm-up.ts#warmUp' },
    training: {
      steps: 25,
      promptsPerStep: 16,
      samplesPerPrompt: 8,
      passes: 2,
      learningRate: 1e-3,
      warmupSteps: 3,
      finalLearningRateFraction: 0.2,
    },
    sampling: { maxTokens: 16 },
    limits: { maxTurns: 4 },
    evaluation: { samplesPerPrompt: 4 },
    concurrency: 64,
  },
})
