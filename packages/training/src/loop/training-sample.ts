import type { TrainingSample } from '@aworld-train/protocol'

/** Tells the samples of a run apart; a sample that a trainer has changed keeps its key. */
export function sampleKey({ agent, provenance: { rollout, turns } }: TrainingSample): string {
  return `${rollout}/${agent}/${turns.join('.')}`
}
