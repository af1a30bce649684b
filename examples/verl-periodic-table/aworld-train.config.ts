import { defineTraining } from 'aworld-train'

/**
 * The main example, trained by verl on the processor: agent, tools, tasks, reward and warm-up checkpoint are those of
 * `examples/periodic-table`. Numbers are its own where verl has a word for them.
 */
export default defineTraining({
  name: 'verl-periodic-table',
  agent: '../periodic-table/agent.ts#agent',
  trainDataset: '../periodic-table/data/train.jsonl',
  testDataset: '../periodic-table/data/test.jsonl',
  rewardFunc: '../periodic-table/reward.ts#exactMatch',
  trainEngineName: 'verl',
  config: {
    training: {
      steps: 15,
      promptsPerStep: 16,
      samplesPerPrompt: 8,
      passes: 2,
      learningRate: 1e-3,
      // verl counts them from zero: with any, the first step has a learning rate of zero.
      warmupSteps: 0,
      finalLearningRateFraction: 0.2,
      clipLow: 0.2,
      clipHigh: 0.28,
      weightDecay: 0.01,
      betas: [0.9, 0.98],
      // verl evaluates and saves after the last step too, where it does so at all.
      evaluateEvery: 15,
      checkpointEvery: 30,
    },
    sampling: { temperature: 1 },
    evaluation: { temperature: 1, kindKey: 'kind' },
    // The tasks are in rows of 16 that each hold the mixture of kinds.
    data: { max_prompt_length: 192, max_response_length: 192, shuffle: false },
    actor_rollout_ref: { model: { path: '../periodic-table/model' } },
    smoke: true,
    rows: 'last',
    limits: { maxTurns: 6 },
    maxCompletionTokens: 40,
    concurrency: 128,
  },
})
