import { hash } from 'node:crypto'
import type { Episode, RolloutRequest } from '@aworld-train/core'
import type { AttemptResult } from './run-attempt.ts'

/** The result of an attempt as an episode without a score yet. */
export function toEpisode(request: RolloutRequest, attempt: number, result: AttemptResult): Episode {
  const { key, task, group, sample, split } = request
  const { trajectories, toolCalls, answer, messages, stopReason, limitedSideBySide, error, files, filesRefused, timing } = result
  return {
    version: 2,
    rollout: key,
    attempt,
    taskId: task.id,
    group,
    sample,
    split,
    trajectories: [...trajectories],
    toolCalls: [...toolCalls],
    answer,
    messages: [...messages],
    scores: {},
    reward: null,
    stopReason,
    ...(limitedSideBySide && { limitedSideBySide }),
    ...(error && { error }),
    ...(files && {
      files: files.map(({ path, executable, bytes }) => ({
        path,
        executable,
        bytes: bytes.length,
        sha256: hash('sha256', bytes),
      })),
    }),
    ...(filesRefused && { filesRefused }),
    timing,
  }
}
