import type { Episode } from '../protocol/episode.ts'
import type { Message } from '../protocol/message.ts'

const keyOf = ({ content, toolCalls = [] }: Message) => JSON.stringify([content ?? '', toolCalls.map(({ id }) => id)])

/**
 * The model that wrote each message of an episode: its name, or `null` for the policy of its agent's rollout. Answers are matched by their
 * text and calls, in the order of time.
 */
export function messageModels({ messages, trajectories }: Pick<Episode, 'messages' | 'trajectories'>): (string | null)[] {
  const speakers = new Map<string, (string | null)[]>()
  const turns = trajectories.flatMap((trajectory) => trajectory.turns).sort((a, b) => a.timing.startedAt - b.timing.startedAt)
  for (const { message, model = null } of turns) {
    const key = keyOf(message)
    const before = speakers.get(key)
    if (before) before.push(model)
    else speakers.set(key, [model])
  }
  return messages.map((message) => (message.role === 'assistant' ? (speakers.get(keyOf(message))?.shift() ?? null) : null))
}
