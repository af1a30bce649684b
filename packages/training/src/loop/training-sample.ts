import type { TrainingSample } from '@aworld-train/protocol'

/** Tokens of a sample that carry loss. */
export function maskedTokens({ lossMask }: TrainingSample): number {
  let tokens = 0
  for (const bit of lossMask) tokens += bit
  return tokens
}

/** Tells the samples of a run apart; a sample that a trainer has changed keeps its key. */
export function sampleKey({ agent, provenance: { rollout, turns } }: TrainingSample): string {
  return `${rollout}/${agent}/${turns.join('.')}`
}
