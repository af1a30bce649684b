import { Agent, LocalTrainer, type RunReport, Swarm, toTrainingSamples } from 'aworld-train'

const agentOf = (name: string, policy: string) =>
  new Agent({ name, systemPrompt: 'Answer.', maxTurns: 1, conf: { llmProvider: 'policy', llmModelName: policy } })

/** A reader, and a lead that is asked with what the reader has said: each has a policy of its own. */
export const pair = new Swarm(agentOf('reader', 'reader'), agentOf('lead', 'lead'))

/** A policy gradient over both: an advantage is a reward without the mean reward of its task. */
export class TwoPolicyTrainer extends LocalTrainer {
  override async train(signal?: AbortSignal): Promise<RunReport> {
    await using policy = await this.openPolicy(signal)
    const { learner, trainTasks, config } = policy
    const { steps, learningRate, betas, epsilon, weightDecay, maxGradNorm, aggregation } = config.training
    for (let step = await policy.restore(); step < (steps ?? 10); step++) {
      const episodes = await policy.rollout(trainTasks)
      const groups = Map.groupBy(episodes, ({ group }) => group)
      const samples = episodes.flatMap((episode) => {
        const rewards = groups.get(episode.group)!.map(({ reward }) => reward ?? 0)
        const advantage = (episode.reward ?? 0) - rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
        return toTrainingSamples(episode).samples.map((sample) => ({ ...sample, advantage }))
      })
      // Each sample trains the policy that sampled it.
      await learner.update({
        samples,
        loss: { kind: 'ppo-clip', clipLow: 0.2, clipHigh: 0.28, klCoefficient: 0, entropyCoefficient: 0, aggregation },
        optimizer: { learningRate, betas, epsilon, weightDecay, maxGradNorm },
      })
      await learner.publish()
    }
    await policy.saveModel('last')
    return await policy.finish()
  }
}
