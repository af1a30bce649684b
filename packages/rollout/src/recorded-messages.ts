import { answering, type Message, type Trajectory, type Turn } from '@aworld-train/core'

/** The conversation that ends with the latest turn of the invocation that answered, put together from the record. */
export function recordedMessages(trajectories: readonly Trajectory[]): Message[] {
  let latest: { turn: Turn; turns: readonly Turn[] } | null = null
  for (const { turns } of answering(trajectories)) {
    for (const turn of turns) if (!latest || turn.timing.endedAt >= latest.turn.timing.endedAt) latest = { turn, turns }
  }
  if (!latest) return []
  const path: Turn[] = []
  for (let turn: Turn | undefined = latest.turn; turn; turn = parentOf(turn, latest.turns)) path.unshift(turn)
  return path.flatMap(({ messagesDelta, message }) => [...messagesDelta, message])
}

function parentOf(turn: Turn, turns: readonly Turn[]): Turn | undefined {
  return turn.parent === null ? undefined : turns.find(({ index }) => index === turn.parent)
}
