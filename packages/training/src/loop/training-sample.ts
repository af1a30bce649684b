import type { TrainingSample } from '@aworld-train/core'

/** Identifies a sample in a run. A sample that a trainer has changed keeps its key. */
export function sampleKey({ agent, provenance: { rollout, turns } }: TrainingSample): string {
  return `${rollout}/${agent}/${turns.join('.')}`
}
