import type { RunProgress } from '@aworld-train/core'
import {
  type IncarnationRecord,
  lastStandingSteps,
  metricsFileOf,
  numbersOf,
  readLedger,
  readMetrics,
  standingBatches,
  stepMetrics,
  verlEvaluationMetrics,
} from '@aworld-train/trainer-verl'

/** The starts of verl in a run, and which of their steps the store has. */
export interface VerlHistory {
  /** The starts of verl, in order. */
  incarnations(): readonly IncarnationRecord[]
  begin(record: IncarnationRecord): Promise<void>
  /** The incarnation and step of each evaluation that verl finished. */
  evaluatedSteps(): readonly { readonly incarnation: string; readonly step: number }[]
  /**
   * Keeps the steps up to `step`, with the rollouts of their batches. `step` is that of a checkpoint, or the last of a finished run:
   * verl may still discard steps after its checkpoint.
   */
  commit(step: number): Promise<void>
}

const stateKey = 'verl-incarnations'

/** The history of the run at `path`. */
export function createVerlHistory(store: RunProgress, path: string): VerlHistory {
  const incarnations = () => (store.getState(stateKey) as readonly IncarnationRecord[] | undefined) ?? []
  let committing = Promise.resolve()

  async function commitUpTo(limit: number): Promise<void> {
    const committed = store.steps().at(-1)?.step ?? 0
    if (limit <= committed) return
    const starts = incarnations()
    const batches = Map.groupBy(
      standingBatches(
        starts.map(({ incarnation }) => readLedger(path, incarnation)),
        starts,
      ),
      ({ step }) => step,
    )
    const metrics = standingMetrics(path, starts)
    for (const [step, numbers] of [...metrics].sort(([a], [b]) => a - b)) {
      if (step <= committed || step > limit) continue
      const keys = (batches.get(step) ?? []).flatMap((line) => line.keys.map(({ key }) => key))
      await store.commitStep({
        step,
        weightVersion: step,
        rollouts: [...new Set(keys)],
        metrics: stepMetrics(numbers),
        checkpoint: 'timing_s/save_checkpoint' in numbers ? `checkpoints/global_step_${step}` : null,
      })
    }
  }

  return {
    incarnations,
    evaluatedSteps: () =>
      incarnations().flatMap(({ incarnation }) =>
        readMetrics(metricsFileOf(path, incarnation))
          .filter(({ data }) => verlEvaluationMetrics(numbersOf(data)) !== null)
          .map(({ step }) => ({ incarnation, step })),
      ),
    begin: (record) => store.setState(stateKey, [...incarnations(), record]),
    commit(step) {
      committing = committing.catch(() => {}).then(() => commitUpTo(step))
      return committing
    },
  }
}

/** Metrics of the training steps that are kept, by step. */
function standingMetrics(path: string, incarnations: readonly IncarnationRecord[]): Map<number, Record<string, number>> {
  const limits = lastStandingSteps(incarnations)
  const found = new Map<number, Record<string, number>>()
  for (const { incarnation } of incarnations) {
    for (const { step, data } of readMetrics(metricsFileOf(path, incarnation))) {
      const numbers = numbersOf(data)
      if ('timing_s/step' in numbers && step <= (limits.get(incarnation) ?? 0)) found.set(step, numbers)
    }
  }
  return found
}
