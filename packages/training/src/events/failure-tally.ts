import { countFailures, type EndedRollout, type EvaluationResult, isUnscored, type RunEvent, TrainError } from '@aworld-train/core'

/** Counts why rollouts of a run failed. */
export interface FailureTally {
  read(event: RunEvent): void
  /** Adds the most frequent failure of rollouts to the error of a trainer that had nothing to train; returns any other error as it is. */
  explain(error: TrainError): TrainError
  /** Outcome of the rollouts outside of training since the last call. */
  takeEvaluation(): EvaluationHere
}

/** An evaluation as this side saw its rollouts. */
export interface EvaluationHere extends Pick<EvaluationResult, 'failed' | 'failures'> {
  /** If the reward abstained from some rollouts: their number, and the mean over tasks without them, which a framework may count as 0. */
  readonly abstained: { readonly unscored: number; readonly reward: number } | null
}

export function createFailureTally(): FailureTally {
  const counts = new Map<string, number>()
  let evaluated: EvaluatedRollout[] = []
  return {
    read(event) {
      if (event.type !== 'rollout-end') return
      if (event.split !== 'train') evaluated.push(event)
      if (!event.error) return
      // Messages name their rollout; messages that differ only in that are counted as one.
      const message = event.error.message.replaceAll(event.rollout, '…')
      counts.set(message, (counts.get(message) ?? 0) + 1)
    },
    takeEvaluation() {
      const failures = countFailures(evaluated)
      const abstained = withoutUnscored(evaluated)
      evaluated = []
      return { failed: failures.reduce((sum, { count }) => sum + count, 0), failures, abstained }
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

type EvaluatedRollout = EndedRollout & { readonly taskId: string }

/** `null` if the reward abstained from none, or if the framework scores. */
function withoutUnscored(rollouts: readonly EvaluatedRollout[]): EvaluationHere['abstained'] {
  const scored = rollouts.filter((rollout) => !isUnscored(rollout))
  if (scored.length === rollouts.length || scored.every(({ reward }) => reward === null)) return null
  const perTask = [...Map.groupBy(scored, ({ taskId }) => taskId).values()].map(
    (ofTask) => ofTask.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / ofTask.length,
  )
  return { unscored: rollouts.length - scored.length, reward: perTask.reduce((sum, reward) => sum + reward, 0) / perTask.length }
}
