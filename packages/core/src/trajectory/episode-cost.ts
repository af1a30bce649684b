import type { Episode } from '../protocol/episode.ts'
import type { Turn } from '../protocol/turn.ts'

/** The turns of an episode's own attempt. */
export const ownTurns = ({ trajectories, attempt }: Pick<Episode, 'trajectories' | 'attempt'>): Turn[] =>
  trajectories.flatMap(({ turns }) => turns.filter((turn) => turn.attempt === attempt))

/** US dollars for the calls of an episode's own attempt to models with a price. */
export const episodeCost = (episode: Pick<Episode, 'trajectories' | 'attempt'>): number =>
  ownTurns(episode).reduce((sum, { cost = 0 }) => sum + cost, 0)
