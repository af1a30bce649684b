import type { Episode, Turn } from '@aworld-train/protocol'
import type { EpisodeBody } from './run-queries.ts'

/** An attempt's result without what its turns hold. */
export interface EncodedEpisode {
  readonly rollout: string
  readonly attempt: number
  /** As the database keeps it. */
  readonly body: string
  readonly turns: readonly (readonly [agent: string, index: number])[]
}

export function encodeEpisode(episode: Episode): EncodedEpisode {
  const { rollout, attempt, trajectories } = episode
  const turns = trajectories.flatMap((trajectory) => trajectory.turns.map(({ index }) => [trajectory.agent, index] as const))
  return { rollout, attempt, body: JSON.stringify(toEpisodeBody(episode)), turns }
}

/** The turns of an episode that `missing` names. */
export function missingTurns({ trajectories }: Episode, missing: EncodedEpisode['turns']): (readonly [agent: string, turn: Turn])[] {
  if (missing.length === 0) return []
  const wanted = new Set(missing.map(([agent, index]) => `${index} ${agent}`))
  return trajectories.flatMap(({ agent, turns }) =>
    turns.filter(({ index }) => wanted.has(`${index} ${agent}`)).map((turn) => [agent, turn] as const),
  )
}

function toEpisodeBody(episode: Episode): EpisodeBody {
  const trajectories = episode.trajectories.map((trajectory) => ({
    ...trajectory,
    turns: trajectory.turns.map(({ index, delivered }) => [index, delivered] as const),
  }))
  return { ...episode, trajectories }
}
