import type { Episode, GroupInput, RewardInput } from '@aworld-train/core'

/** Most characters of one episode that a worker is sent. Longer ones are cut. */
const maxMessageCharacters = 1_000_000

/** The episode that a worker gets: whole for a rich reward; without turns for a positional one, or if the text exceeds the bound. */
export function toWorkerInput(input: RewardInput, rich: boolean): RewardInput {
  const { task, episode, answer, files } = input
  const size = episode.messages.reduce((sum, { content }) => sum + (content?.length ?? 0), episode.answer?.length ?? 0)
  if (rich && size <= maxMessageCharacters) return { task, episode, answer, files }
  let remaining = maxMessageCharacters
  const cut = (text: string) => {
    const head = text.slice(0, remaining)
    remaining -= head.length
    return head
  }
  const bounded: Episode = {
    ...episode,
    answer: episode.answer === null ? null : cut(episode.answer),
    trajectories: episode.trajectories.map((trajectory) => ({ ...trajectory, turns: [] })),
    messages: episode.messages.map((message) => (message.content === null ? message : { ...message, content: cut(message.content) })),
    toolCalls: episode.toolCalls.map((call) => ({ ...call, content: cut(call.content) })),
  }
  return { task, episode: bounded, answer, ...(rich && { files }) }
}

/** The group that a worker gets: its episodes as those of a rich reward, each within its bound. */
export const toGroupInput = (input: GroupInput): GroupInput => ({
  ...input,
  episodes: input.episodes.map((episode) => toWorkerInput({ ...input, episode }, true).episode),
})
