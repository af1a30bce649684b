import type { Episode, Message, RewardInput } from '@aworld-train/core'

/** The input of a reward for an episode whose last message is its answer. */
export function rewardInput(
  messages: readonly Message[] = [{ role: 'assistant', content: 'gold' }],
  groundTruth: unknown = 'gold',
): RewardInput {
  const episode: Episode = {
    version: 2,
    rollout: 'r',
    attempt: 0,
    taskId: 't',
    group: 'g',
    sample: 0,
    split: 'train',
    trajectories: [],
    toolCalls: [],
    answer: messages.at(-1)?.content ?? null,
    messages: [{ role: 'user', content: 'which?' }, ...messages],
    scores: {},
    reward: null,
    stopReason: 'completed',
    timing: { startedAt: 0, endedAt: 0 },
  }
  return {
    task: { version: 1, id: 't', hash: 'h', input: 'which?', data: {}, dataSource: 'metals', extraInfo: { level: 2 } },
    episode,
    answer: { version: 1, taskId: 't', groundTruth },
  }
}
