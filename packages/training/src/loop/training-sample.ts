import type { TrainingSample } from '@aworld-train/core'

/** Identifies a sample in a run. A sample that a trainer has changed keeps its key. */
export function sampleKey({ trajectory, provenance: { rollout, turns } }: TrainingSample): string {
  return `${rollout}/${trajectory}/${turns.join('.')}`
}
