import type { Trajectory } from '@aworld-train/protocol'

/** A trajectory for `JSON.stringify`, as its schema describes it on the wire: arrays of numbers in place of typed ones. */
export function plainTrajectory(trajectory: Trajectory): object {
  const turns = trajectory.turns.map((turn) => ({
    ...turn,
    promptTokenIds: Array.from(turn.promptTokenIds),
    completionTokenIds: Array.from(turn.completionTokenIds),
    rolloutLogprobs: Array.from(turn.rolloutLogprobs),
  }))
  return { ...trajectory, turns }
}
