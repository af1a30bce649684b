import { defineReward } from 'aworld-train'

/** 1 for an episode that took exactly what it should, whatever the agent says about it. */
export const took = defineReward(({ episode, answer }) => {
  const taken = episode.toolCalls.filter(({ name, isError }) => name === 'take' && !isError)
  return taken.map(({ content }) => content).join(', ') === answer.groundTruth ? 1 : 0
})
