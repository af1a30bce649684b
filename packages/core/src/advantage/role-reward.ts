import type { Episode } from '../protocol/episode.ts'

/**
 * The reward of a role, which is an agent by its name, for a rollout: `(1 - ownReward) * reward + ownReward * own`, where `own` is the value
 * that the reward function returned for that agent. Without such a value it is the reward of the rollout.
 */
export function roleReward(
  { reward, agentRewards = {} }: Pick<Episode, 'reward' | 'agentRewards'>,
  role: string,
  ownReward = 0,
): number | null {
  if (reward === null || ownReward === 0 || !Object.hasOwn(agentRewards, role)) return reward
  return (1 - ownReward) * reward + ownReward * agentRewards[role]!
}
