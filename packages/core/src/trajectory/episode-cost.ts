import type { Turn } from '../protocol/turn.ts'

interface Turns<T> {
  readonly turns: readonly T[]
}

interface OfAttempt<T> {
  readonly attempt: number
  readonly trajectories: readonly Turns<T>[]
}

/** The turns of an episode's own attempt. */
export const ownTurns = <T extends Pick<Turn, 'attempt'>>({ trajectories, attempt }: OfAttempt<T>): T[] =>
  trajectories.flatMap(({ turns }) => turns.filter((turn) => turn.attempt === attempt))

/** US dollars for the calls of an episode's own attempt to models with a price, without those of its reward. */
export const episodeCost = (episode: OfAttempt<Pick<Turn, 'attempt' | 'cost'>>): number => costOf(ownTurns(episode))

/** US dollars for the calls that scored an episode. */
export const rewardCost = ({
  rewardTrajectories = [],
}: {
  readonly rewardTrajectories?: readonly Turns<Pick<Turn, 'cost'>>[] | undefined
}): number => costOf(rewardTrajectories.flatMap(({ turns }) => turns))

const costOf = (turns: readonly Pick<Turn, 'cost'>[]) => turns.reduce((sum, { cost = 0 }) => sum + cost, 0)
