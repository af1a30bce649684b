import { type AnswerKey, stableStringify, TrainError } from '@aworld-train/core'
import type { ChannelAnswers } from './channel-types.ts'

/** Answers of the rows under way. A runner calls `answerKey`, and the check of a submission calls `has`. */
export function createChannelAnswers(): ChannelAnswers {
  const byTask = new Map<string, { readonly answer: AnswerKey; readonly holders: Set<string> }>()
  const tasks = new Map<string, string>()

  function release(key: string): void {
    const taskId = tasks.get(key)
    const entry = taskId === undefined ? undefined : byTask.get(taskId)
    tasks.delete(key)
    entry?.holders.delete(key)
    if (entry?.holders.size === 0) byTask.delete(taskId!)
  }

  return {
    hold(key, answer) {
      release(key)
      const { taskId } = answer
      const entry = byTask.get(taskId)
      if (entry && stableStringify(entry.answer) !== stableStringify(answer)) {
        const message = `Task "${taskId}" is under way with another answer; give each row an id of its own.`
        throw new TrainError('ROLLOUT_INVALID', message)
      }
      if (entry) entry.holders.add(key)
      else byTask.set(taskId, { answer, holders: new Set([key]) })
      tasks.set(key, taskId)
    },
    release,
    has: (taskId) => byTask.has(taskId),
    answerKey: (taskId) => byTask.get(taskId)?.answer ?? { version: 1, taskId, groundTruth: null },
  }
}
