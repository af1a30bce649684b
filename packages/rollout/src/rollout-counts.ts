import { type Episode, episodeCost, type RunEvent, rewardCost, type StopReason, type Trajectory } from '@aworld-train/core'
import type { RolloutCounts } from './rollout-options.ts'
import type { AttemptResult } from './run-attempt.ts'

/** Counts of a runner since it began. */
export interface RolloutTally {
  attempt(result: AttemptResult): void
  superseded(trajectories: readonly Trajectory[]): void
  /** Those of one policy, or all. */
  supersededTokens(policy?: string): number
  retry(): void
  loss(): void
  finished(episode: Episode): void
  counts(): Omit<RolloutCounts, 'queued' | 'running'>
}

export function createRolloutTally(): RolloutTally {
  const ends: Partial<Record<StopReason, number>> = {}
  const superseded = new Map<string, number>()
  const count = {
    finished: 0,
    toolCalls: 0,
    askedToolCalls: 0,
    toolErrors: 0,
    functionCalls: 0,
    retries: 0,
    lostAttempts: 0,
  }
  const supersededTokens = (policy?: string) =>
    policy === undefined ? Array.from(superseded.values()).reduce((sum, tokens) => sum + tokens, 0) : (superseded.get(policy) ?? 0)
  return {
    attempt({ toolCalls, toolErrors, functionCalls, trajectories }) {
      count.toolCalls += toolCalls.length
      for (const { turns } of trajectories) for (const turn of turns) count.askedToolCalls += turn.toolCalls.length
      count.toolErrors += toolErrors
      count.functionCalls += functionCalls
    },
    superseded(trajectories) {
      for (const trajectory of trajectories)
        superseded.set(trajectory.policy, supersededTokens(trajectory.policy) + sampledTokens([trajectory]))
    },
    supersededTokens,
    retry() {
      count.retries++
    },
    loss() {
      count.lostAttempts++
    },
    finished({ stopReason }) {
      count.finished++
      ends[stopReason] = (ends[stopReason] ?? 0) + 1
    },
    counts: () => ({ ...count, supersededTokens: supersededTokens(), episodesByStopReason: { ...ends } }),
  }
}

/** The event that reports the result of a rollout. */
export function endEvent(episode: Episode): RunEvent {
  const { rollout, attempt, split, taskId, stopReason, error, timing, toolCalls, trajectories, reward } = episode
  const cost = episodeCost(episode) + rewardCost(episode)
  return {
    type: 'rollout-end',
    at: Date.now(),
    rollout,
    attempt,
    split,
    taskId,
    stopReason,
    reward,
    turns: trajectories.reduce((sum, { turns }) => sum + turns.length, 0),
    toolCalls: toolCalls.length,
    sampledTokens: sampledTokens(trajectories),
    ...(cost > 0 && { cost }),
    durationMs: timing.endedAt - timing.startedAt,
    ...(error && { error }),
  }
}

function sampledTokens(trajectories: readonly Trajectory[]): number {
  return trajectories.reduce((sum, { turns }) => sum + turns.reduce((count, turn) => count + turn.completionTokenIds.length, 0), 0)
}
