import { answeringTrajectory, type Message, type Trajectory, type Turn } from '@aworld-train/core'

/** The conversation that ends with the latest turn of the invocation that answered, put together from the record. */
export function recordedMessages(trajectories: readonly Trajectory[], answer: string | null): Message[] {
  const turns = answeringTrajectory(trajectories, answer)?.turns ?? []
  const latest = turns.reduce<Turn | undefined>(
    (best, turn) => (best && best.timing.endedAt > turn.timing.endedAt ? best : turn),
    undefined,
  )
  const path: Turn[] = []
  for (let turn = latest; turn; turn = parentOf(turn, turns)) path.unshift(turn)
  return path.flatMap(({ messagesDelta, message }) => [...messagesDelta, message])
}

function parentOf(turn: Turn, turns: readonly Turn[]): Turn | undefined {
  return turn.parent === null ? undefined : turns.find(({ index }) => index === turn.parent)
}
