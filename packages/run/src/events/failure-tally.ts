import { countFailures, type EndedRollout } from '@aworld-train/core'
import { type EvaluationResult, type RunEvent, TrainError } from '@aworld-train/protocol'

/** Counts why rollouts of a run failed. */
export interface FailureTally {
  read(event: RunEvent): void
  /** The error of a trainer that had nothing to train, with the most frequent failure of rollouts added; any other error as it is. */
  explain(error: TrainError): TrainError
  /** How the rollouts outside of training ended since the last call. */
  takeEvaluation(): Pick<EvaluationResult, 'failed' | 'failures'>
}

export function createFailureTally(): FailureTally {
  const counts = new Map<string, number>()
  let evaluated: EndedRollout[] = []
  return {
    read(event) {
      if (event.type !== 'rollout-end') return
      if (event.split !== 'train') evaluated.push(event)
      if (!event.error) return
      // Messages name their rollout; messages that differ in nothing else are counted as one.
      const message = event.error.message.replaceAll(event.rollout, '…')
      counts.set(message, (counts.get(message) ?? 0) + 1)
    },
    takeEvaluation() {
      const failures = countFailures(evaluated)
      evaluated = []
      return { failed: failures.reduce((sum, { count }) => sum + count, 0), failures }
    },
    explain(error) {
      const [first] = [...counts].sort(([, a], [, b]) => b - a)
      if (error.code !== 'TRAINER_EMPTY_BATCH' || !first) return error
      const [message, count] = first
      return new TrainError(error.code, `${error.message}\nMost often (${count} rollouts): ${message}`, {
        cause: error,
        details: { ...error.details, failures: Object.fromEntries(counts) },
      })
    },
  }
}
