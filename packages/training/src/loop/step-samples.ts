import { maskedTokens, type StepSample, type TrainingSample, type UntrainedTurns } from '@aworld-train/core'
import { sampleKey } from './training-sample.ts'

/** A row of a batch before its step has trained it. */
export interface BatchRow extends Omit<StepSample, 'step' | 'trainerLogprobs'> {
  readonly policy: string
  /** `null` if its tokens never became a sample. */
  readonly sample: TrainingSample | null
}

/** Rows for samples, in the order of the batch. With `reason` the samples are not trained. */
export function rowsOf(samples: readonly TrainingSample[], reason: BatchRow['reason'] = null): BatchRow[] {
  const seen = new Set<string>()
  return samples.map((sample) => {
    const { agent, trajectory, policy, advantage, provenance } = sample
    const { rollout } = provenance
    // A turn that an earlier sample trains has mask 0 in this one.
    const turns = provenance.turns.filter((turn) => {
      const name = JSON.stringify([rollout, trajectory, turn])
      return !seen.has(name) && seen.add(name)
    })
    const tokens = maskedTokens(sample)
    return { rollout, agent, trajectory, policy, turns, tokens, advantage: reason === null ? advantage : null, reason, sample }
  })
}

/** Rows for the turns of a rollout that no sample trains. */
export function rowsOfUntrained(rollout: string, turns: readonly UntrainedTurns[]): BatchRow[] {
  return turns.map((each) => ({ ...each, rollout, advantage: null, sample: null }))
}

/** The records of a step's rows. `logprobs` has the trainer's logprobs for the trained tokens of a sample, by `sampleKey`. */
export function toStepSamples(
  step: number,
  rows: readonly BatchRow[],
  logprobs: ReadonlyMap<string, Float32Array> = new Map(),
): StepSample[] {
  return rows.map(({ sample, policy: _, ...row }) => ({
    ...row,
    step,
    trainerLogprobs: (sample && logprobs.get(sampleKey(sample))) ?? null,
  }))
}
