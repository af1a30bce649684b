import { defineTraining } from 'aworld-train'
import { atomicNumbers } from './elements.ts'

const names = Object.keys(atomicNumbers)

/** Trains one of the agents here: `aworld-train train examples/any-agent --agent examples/any-agent/langgraph.ts#agent`. */
export default defineTraining({
  name: 'any-agent',
  agent: './openai-chat.ts#agent',
  trainDataset: names.flatMap((first) =>
    names
      .filter((second) => second !== first)
      .map((second) => ({
        id: `${first}-${second}`,
        prompt: `Which comes first, ${first} or ${second}?`,
        answer: first,
        data_source: 'elements',
      })),
  ),
  rewardFunc: './reward.ts#reward',
  trainEngineName: 'local',
  config: {
    model: { warmUp: './make-model.ts#makeModel' },
    // The same bits on every machine, so that 20 steps always reach the same.
    engine: { simd: 'plain' },
    training: { steps: 20, promptsPerStep: 8, samplesPerPrompt: 12, learningRate: 3e-2, warmupSteps: 0, checkpointEvery: null },
    sampling: { maxTokens: 64 },
    limits: { maxTurns: 6, timeoutMs: 60_000 },
    concurrency: 96,
  },
})
