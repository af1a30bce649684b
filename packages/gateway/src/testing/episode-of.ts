import type { Episode, Trajectory } from '@aworld-train/core'

/** A rewarded episode from the record of a session. */
export const episodeOf = (trajectories: readonly Trajectory[]): Episode => ({
  version: 2,
  rollout: 'rollout-1',
  attempt: 0,
  taskId: 'task-1',
  group: 'group',
  sample: 0,
  split: 'train',
  trajectories: [...trajectories],
  toolCalls: [],
  answer: 'x',
  messages: [],
  scores: {},
  reward: 1,
  stopReason: 'completed',
  timing: { startedAt: 0, endedAt: 0 },
})
