import { z } from 'zod'
import { Trajectory } from '../protocol/episode.ts'

/** Converts a trajectory for `JSON.stringify` to the form of its schema on the wire, with plain arrays of numbers. */
export function plainTrajectory(trajectory: Trajectory): object {
  const turns = trajectory.turns.map((turn) => ({
    ...turn,
    promptTokenIds: Array.from(turn.promptTokenIds),
    completionTokenIds: Array.from(turn.completionTokenIds),
    rolloutLogprobs: Array.from(turn.rolloutLogprobs),
  }))
  return { ...trajectory, turns }
}

/** Reads what `plainTrajectory` made. Throws a ZodError for another shape. */
export const toTrajectory = (plain: object): Trajectory => z.decode(Trajectory, plain as z.input<typeof Trajectory>)
