import { type Episode, plainTrajectory, toTrajectory } from '@aworld-train/core'

/** The calls of a reward in the body of an episode, with typed arrays as arrays of numbers. They are text, and in no segment. */
export interface PlainCalls {
  readonly rewardTrajectories?: readonly object[] | undefined
}

type Calls = Pick<Episode, 'rewardTrajectories'>

export const plainCalls = ({ rewardTrajectories }: Calls): PlainCalls =>
  rewardTrajectories ? { rewardTrajectories: rewardTrajectories.map(plainTrajectory) } : {}

export const readCalls = ({ rewardTrajectories }: PlainCalls): Calls =>
  rewardTrajectories ? { rewardTrajectories: rewardTrajectories.map(toTrajectory) } : {}
