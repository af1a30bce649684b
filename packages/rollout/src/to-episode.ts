import type { Episode, RolloutRequest } from '@aworld-train/core'
import type { AttemptResult } from './run-attempt.ts'

/** The result of an attempt as an episode without a score yet. */
export function toEpisode(request: RolloutRequest, attempt: number, result: AttemptResult): Episode {
  const { key, task, group, sample, split } = request
  const { trajectories, edges, toolCalls, answer, messages, stopReason, error, timing } = result
  return {
    version: 1,
    rollout: key,
    attempt,
    taskId: task.id,
    group,
    sample,
    split,
    trajectories: [...trajectories],
    edges: [...edges],
    toolCalls: [...toolCalls],
    answer,
    messages: [...messages],
    scores: {},
    reward: null,
    stopReason,
    ...(error && { error }),
    timing,
  }
}
