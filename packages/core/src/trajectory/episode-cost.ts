import type { Episode } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'

/** The turns of an episode's own attempt. */
export const ownTurns = ({ trajectories, attempt }: Pick<Episode, 'trajectories' | 'attempt'>): Turn[] =>
  trajectories.flatMap(({ turns }) => turns.filter((turn) => turn.attempt === attempt))

/** US dollars for the calls of an episode's own attempt to models with a price, without those of its reward. */
export const episodeCost = (episode: Pick<Episode, 'trajectories' | 'attempt'>): number => costOf(ownTurns(episode))

/** US dollars for the calls that scored an episode. */
export const rewardCost = ({ rewardTrajectories = [] }: Pick<Episode, 'rewardTrajectories'>): number =>
  costOf(rewardTrajectories.flatMap(({ turns }) => turns))

const costOf = (turns: readonly Turn[]) => turns.reduce((sum, { cost = 0 }) => sum + cost, 0)
