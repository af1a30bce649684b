import {
  countFailures,
  describeFailure,
  type Episode,
  type ErrorCode,
  isFailed,
  isInfrastructureFailure,
  TrainError,
  toEndedRollout,
} from '@aworld-train/core'

/**
 * Throws if the infrastructure failed most rollouts of a step, or if every rollout failed. Returns a warning if some prompts alone filled
 * the context, and `null` otherwise.
 */
export function checkRollouts(step: number, episodes: readonly Episode[]): string | null {
  // A rollout that ended the workers it had for itself is no outage.
  const lost = episodes.filter((episode) => isInfrastructureFailure(episode) && episode.error?.code !== 'WORKER_LOST')
  if (2 * lost.length > episodes.length) {
    const { code, message } = lost[0]!.error!
    throw new TrainError(
      code as ErrorCode,
      `${lost.length} of ${episodes.length} rollouts of step ${step} have no outcome, so it was not trained; they run again when the run is resumed. The first: ${message}`,
      { details: { step, isOutage: true } },
    )
  }
  const ended = episodes.map(toEndedRollout)
  const overflows = episodes.filter(hasNoRoom)
  if (ended.length > 0 && ended.every(isFailed)) {
    const failures = countFailures(ended)
    throw new TrainError(
      overflows.length === episodes.length ? 'POLICY_CONTEXT_OVERFLOW' : 'TRAINER_EMPTY_BATCH',
      `All ${ended.length} rollouts of step ${step} failed; nothing was trained:${failures.map((failure) => `\n  - ${describeFailure(failure)}`).join('')}`,
      { details: { step, failures, stopReasons: [...new Set(ended.map(({ stopReason }) => stopReason))] } },
    )
  }
  const [first] = overflows
  if (!first) return null
  return `${overflows.length} of ${episodes.length} rollouts of step ${step} are not trained: the prompt left the model no room to answer. The first, of task "${first.taskId}": ${first.error?.message}`
}

/** Whether the prompt of the episode alone filled the context. */
const hasNoRoom = ({ error, reward }: Episode) => error?.code === 'POLICY_CONTEXT_OVERFLOW' && reward === null
