import { type Episode, isInfrastructureFailure, isUnscored, roleReward, toEndedRollout } from '@aworld-train/core'

export interface RoleMetricsOptions {
  /** Number of groups in which the values of a role differ. Without it that metric is left out. */
  readonly groupsWithVariance?: ReadonlyMap<string, number> | undefined
  readonly ownReward: number
}

/**
 * Metrics of each agent that is trained, as `role/NAME/METRIC`; none if there is only one. The mean reward is over the rollouts that
 * `rewardMean` counts and in which the agent had a turn, and absent without such a rollout.
 */
export function roleMetrics(episodes: readonly Episode[], { groupsWithVariance, ownReward }: RoleMetricsOptions): Record<string, number> {
  const invocations = episodes.flatMap((episode) =>
    episode.trajectories
      .filter(({ trainable }) => trainable)
      .map(({ agent, turns }) => ({ episode, agent, turns: turns.filter(({ model }) => model === undefined) })),
  )
  const roles = Map.groupBy(invocations, ({ agent }) => agent)
  if (roles.size < 2) return {}
  const metrics = Array.from(roles, ([role, all]): [string, Record<string, number>] => {
    const started = all.filter(({ turns }) => turns.length > 0)
    const turns = started.flatMap((each) => each.turns)
    const rewards = [...new Set(started.map(({ episode }) => episode))]
      .filter((episode) => !isInfrastructureFailure(episode) && !isUnscored(toEndedRollout(episode)))
      .map((episode) => roleReward(episode, role, ownReward) ?? 0)
    return [
      role,
      {
        ...(rewards.length > 0 && { reward: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length }),
        sampledTokens: turns.reduce((sum, { completionTokenIds }) => sum + completionTokenIds.length, 0),
        turns: turns.length,
        malformedTurns: turns.filter(({ unparsed = [] }) => unparsed.length > 0).length,
        invocations: started.length,
        ...(groupsWithVariance && { groupsWithVariance: groupsWithVariance.get(role) ?? 0 }),
      },
    ]
  })
  return Object.fromEntries(
    metrics.flatMap(([role, values]) => Object.entries(values).map(([name, value]) => [`role/${role}/${name}`, value])),
  )
}
