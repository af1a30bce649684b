import { defineReward } from 'aworld-train'
import type { SourceTask } from './tasks.ts'

/**
 * 1 for the right sum alone, 0 for anything else: it is the reward of all agents. The readers' own is the share of their answers that are
 * right. It counts as far as `training.ownReward` says.
 */
export const rightSum = defineReward(({ task, episode, answer }) => {
  const { pages } = task.data as SourceTask['data']
  const read = episode.toolCalls.filter(({ name }) => name === 'reader')
  const right = read.filter((call) => !call.isError && pages[JSON.parse(call.arguments).content]?.endsWith(` ${call.content}`))
  return {
    reward: episode.answer?.trim() === answer.groundTruth ? 1 : 0,
    ...(read.length > 0 && { agents: { reader: right.length / read.length } }),
  }
})
