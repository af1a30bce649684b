import { defineReward } from 'aworld-train'

/** Scores what the trained agent sampled, since the others say the same every time: the share of its even tokens. */
export const evenTokens = defineReward(({ episode }) => {
  const ids = episode.trajectories
    .filter(({ trainable }) => trainable)
    .flatMap(({ turns }) => turns.flatMap((turn) => [...turn.completionTokenIds]))
  return ids.length === 0 ? 0 : ids.filter((id) => id % 2 === 0).length / ids.length
})
