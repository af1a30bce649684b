import type { Episode, StopReason, Timing } from '@aworld-train/core'

/** Columns of a rollout's row that hold its result. */
export interface RolloutColumns {
  readonly startedAt: number
  readonly endedAt: number
  readonly engineMs: number
  readonly toolsMs: number
  readonly reward: number | null
  readonly stopReason: StopReason
  readonly turns: number
  readonly toolCalls: number
  readonly sampledTokens: number
  readonly cost: number
  /** JSON. */
  readonly error: string | null
  readonly answer: string | null
}

export function toRolloutColumns({ trajectories, toolCalls, timing, reward, stopReason, error, answer }: Episode): RolloutColumns {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns)
  const calls = turns.map((turn) => turn.timing)
  const engineMs = lengthOf(calls)
  return {
    ...timing,
    engineMs,
    toolsMs: lengthOf([...calls, ...toolCalls.map((call) => call.timing)]) - engineMs,
    reward,
    stopReason,
    turns: turns.length,
    toolCalls: toolCalls.length,
    sampledTokens: turns.reduce((sum, { completionTokenIds }) => sum + completionTokenIds.length, 0),
    cost: turns.reduce((sum, turn) => sum + (turn.cost ?? 0), 0),
    error: error ? JSON.stringify(error) : null,
    answer,
  }
}

/** Milliseconds in which at least one of these spans was under way. */
export function lengthOf(spans: readonly Timing[]): number {
  let length = 0
  let end = Number.NEGATIVE_INFINITY
  for (const { startedAt, endedAt } of spans.toSorted((a, b) => a.startedAt - b.startedAt)) {
    length += Math.max(0, endedAt - Math.max(startedAt, end))
    end = Math.max(end, endedAt)
  }
  return length
}
