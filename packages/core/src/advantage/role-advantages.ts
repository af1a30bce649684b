import { type AdvantageKind, type GroupAdvantages, groupAdvantages } from './advantages.ts'

/** What a row says of its role: the agent that sampled it, and the reward of that agent for the rollout. */
export interface RoleRow {
  readonly agent: string
  readonly reward: number
}

export interface RoleAdvantages extends Pick<GroupAdvantages, 'noGradient'> {
  /** The advantage of the role in each rollout of the group; `null` where it takes no part. */
  readonly advantages: readonly (number | null)[]
}

/**
 * Advantages of one group by role, from the rows of each of its rollouts. A role has one value a rollout, however many rows it has there, and
 * its mean and deviation are those of its values alone (Dr. MAS, arXiv 2602.08847).
 */
export function roleAdvantages(rollouts: readonly (readonly RoleRow[])[], kind: AdvantageKind): Map<string, RoleAdvantages> {
  const valuesOf = rollouts.map((rows) => new Map(rows.map(({ agent, reward }) => [agent, reward])))
  const roles = new Set(rollouts.flat().map(({ agent }) => agent))
  return new Map(
    Array.from(roles, (role) => {
      const values = valuesOf.flatMap((byRole) => byRole.get(role) ?? [])
      const { advantages, noGradient } = groupAdvantages(values, kind)
      const remaining = advantages.values()
      return [role, { advantages: valuesOf.map((byRole) => (byRole.has(role) ? remaining.next().value! : null)), noGradient }]
    }),
  )
}
