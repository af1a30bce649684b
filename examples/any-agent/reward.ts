import { defineReward } from 'aworld-train'

/** 1 for an answer that was looked up: one of few things that a policy of random weights does by chance. */
export const reward = defineReward(({ episode }) => {
  const calls = episode.trajectories.flatMap(({ turns }) => turns.flatMap(({ toolCalls }) => toolCalls))
  return calls.length > 0 && episode.answer !== null ? 1 : 0
})
