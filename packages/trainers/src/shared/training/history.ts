import type { MetricsReading, RunProgress, TrainerOutput } from '@aworld-train/core'
import { readLedger } from '../ledger/read-ledger.ts'
import { type IncarnationRecord, lastStandingSteps, standingBatches } from '../ledger/standing-batches.ts'
import { metricsFileOf, numbersOf, readMetrics } from '../process/metrics-file.ts'
import type { Trainer } from './training-plan.ts'

/** The starts of a framework in a run, and the steps that the store has of each. */
export interface TrainerHistory {
  /** The starts, in order. */
  incarnations(): readonly IncarnationRecord[]
  begin(record: IncarnationRecord): Promise<void>
  /** The incarnation and step of each evaluation that was finished. */
  evaluatedSteps(): readonly { readonly incarnation: string; readonly step: number }[]
  /**
   * Keeps the steps up to `step`, with the rollouts of their batches. `step` is that of a checkpoint or the last of a finished run, because
   * the framework may still discard steps after its checkpoint.
   */
  commit(step: number): Promise<void>
}

/** The history of the run at `path`. */
export function createTrainerHistory({ name, output, checkpoints }: Trainer, store: RunProgress, path: string): TrainerHistory {
  const stateKey = `${name}-incarnations`
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
    const standing = standingSteps(output, path, starts)
    for (const [step, { metrics, saved }] of [...standing].sort(([a], [b]) => a - b)) {
      if (step <= committed || step > limit) continue
      const keys = (batches.get(step) ?? []).flatMap((line) => line.keys.map(({ key }) => key))
      await store.commitStep({
        step,
        weightVersion: step,
        rollouts: [...new Set(keys)],
        metrics: { ...metrics },
        checkpoint: saved ? checkpoints.pathOf(step) : null,
      })
    }
  }

  return {
    incarnations,
    evaluatedSteps: () =>
      incarnations().flatMap(({ incarnation }) =>
        readMetrics(metricsFileOf(path, incarnation))
          .filter(({ data }) => output.readMetrics(numbersOf(data)).evaluation !== null)
          .map(({ step }) => ({ incarnation, step })),
      ),
    begin: (record) => store.setState(stateKey, [...incarnations(), record]),
    commit(step) {
      committing = committing.catch(() => {}).then(() => commitUpTo(step))
      return committing
    },
  }
}

/** The training steps that are kept, by step. */
function standingSteps(output: TrainerOutput, path: string, incarnations: readonly IncarnationRecord[]) {
  const limits = lastStandingSteps(incarnations)
  const found = new Map<number, NonNullable<MetricsReading['step']>>()
  for (const { incarnation } of incarnations) {
    for (const { step, data } of readMetrics(metricsFileOf(path, incarnation))) {
      const reading = output.readMetrics(numbersOf(data)).step
      if (reading && step <= (limits.get(incarnation) ?? 0)) found.set(step, reading)
    }
  }
  return found
}
