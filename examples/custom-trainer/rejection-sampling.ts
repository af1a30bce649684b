import { LocalTrainer, type RunReport, type TrainingSample, toTrainingSamples, trainSft } from 'aworld-train'

const rounds = 5
const batchSize = 16

/** Supervised training on the policy's own successes: sample, keep the episodes with reward 1, train on them, repeat. */
export class RejectionSampling extends LocalTrainer {
  override async train(signal?: AbortSignal): Promise<RunReport> {
    await using policy = await this.openPolicy(signal)
    const { learner, trainTasks, testTasks, config } = policy
    await policy.evaluate(testTasks, 'before')
    for (let round = await policy.restore(); round < rounds; round++) {
      const episodes = await policy.rollout(trainTasks)
      const kept = episodes.filter(({ reward }) => reward === 1)
      const batches = toBatches(kept.flatMap((episode) => toTrainingSamples(episode).samples))
      await trainSft({ learner, batches, steps: batches.length, learningRate: config.training.learningRate, signal })
    }
    await policy.evaluate(testTasks, 'after')
    await policy.saveModel('last')
    return await policy.finish()
  }
}

/** Every batch holds samples of many tasks. */
function toBatches(samples: readonly TrainingSample[]): TrainingSample[][] {
  const count = Math.ceil(samples.length / batchSize)
  return Array.from({ length: count }, (_, batch) => samples.filter((_, index) => index % count === batch))
}
