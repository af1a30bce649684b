import type { GroupInput, ScoringContext } from '@aworld-train/core'

/** One value for each episode of a group, in their order: a finite number, or `null` to abstain. */
export type GroupValues = readonly (number | null)[]

export type GroupRewardFunction = (input: GroupInput, context: ScoringContext) => GroupValues | Promise<GroupValues>

const mark = 'aworld-train.group-reward'

/** A reward that sees all episodes of a group. */
export interface DefinedGroupReward {
  readonly mark: typeof mark
  /** The values of `rank` are an order within the group and no score: an evaluation shows them, and no mean. */
  readonly kind: 'group' | 'rank'
  readonly name: string
  readonly score: GroupRewardFunction
}

/**
 * Makes a reward that compares the rollouts of a task, once the last of them has ended:
 * `defineGroupReward(({ task, answer, episodes }, { model, signal }) => values)`.
 */
export function defineGroupReward(score: GroupRewardFunction, name = score.name || 'reward'): DefinedGroupReward {
  return { mark, kind: 'group', name, score }
}

/** Whether a value was made by `defineGroupReward` or `rankReward`, in this copy of the package or another. */
export function isDefinedGroupReward(value: unknown): value is DefinedGroupReward {
  return typeof value === 'object' && value !== null && (value as Partial<DefinedGroupReward>).mark === mark
}
