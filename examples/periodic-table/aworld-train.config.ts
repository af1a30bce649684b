import { defineTraining } from 'aworld-train'

/**
 * Trains the agent to use its tools. Numbers and their reasons: docs/3.guides/periodic-table.md. `train --engine NAME` trains it with
 * another trainer; a section with the name of one stands over the rest there, and the others leave it aside.
 */
export default defineTraining({
  name: 'periodic-table',
  agent: './agent.ts#agent',
  trainDataset: './data/train.jsonl',
  validationDataset: './data/validation.jsonl',
  testDataset: './data/test.jsonl',
  rewardFunc: './reward.ts#exactMatch',
  trainEngineName: 'local',
  config: {
    model: { path: './model', warmUp: './warm-up.ts#warmUp' },
    training: {
      steps: 45,
      promptsPerStep: 16,
      samplesPerPrompt: 8,
      stratify: { key: 'kind', counts: { 'one-hop': 7, 'two-hop': 6, comparison: 3 } },
      passes: 2,
      learningRate: 6e-4,
      warmupSteps: 5,
      finalLearningRateFraction: 0.2,
      clipLow: 0.2,
      clipHigh: 0.28,
    },
    sampling: { temperature: 1, maxTokens: 40 },
    limits: { maxTurns: 6 },
    evaluation: { kindKey: 'kind' },
    concurrency: 128,
    // A LoRA adapter of rank 32, which takes a higher rate than all weights do. Groups without variance stay in the mean of an update:
    // without them the gradient grows as groups are solved, and at this rate the policy collapses.
    tinker: { training: { passes: 1, learningRate: 2.5e-3, warmupSteps: 3, dropZeroVariance: false } },
    // TRL's default computes every forward pass twice, for models that need the memory.
    trl: { training: { learningRate: 1e-3 }, gradient_checkpointing: false },
    // The same of ms-swift, and its KL term, which the others do not have by default and which takes a pass of a second model.
    swift: { training: { learningRate: 1e-3 }, gradient_checkpointing: false, beta: 0 },
    // What sampled is what is trained, so that AReaL need not compute its logprobs a second time; its rate rises by batches, from 0 in the first,
    // and at twice this rate a policy that had learned to look up forgot how to calculate.
    areal: { training: { learningRate: 5e-4, warmupSteps: 3 }, actor: { use_decoupled_loss: false } },
    // verl draws no mixture, so that it takes the file's, whose rows of 16 each have it. Without `smoke` it trains on GPUs.
    verl: {
      training: { stratify: null, learningRate: 1e-3, warmupSteps: 0 },
      data: { max_prompt_length: 192, max_response_length: 192, shuffle: false },
      smoke: true,
      rows: 'last',
    },
  },
})
