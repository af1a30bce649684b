import type { RolloutRow } from '@aworld-train/core'

/** The name of a rollout's evaluation: that in its key, or else its split. */
export function evaluationName({ key, split, step }: Pick<RolloutRow, 'key' | 'split' | 'step'>): string {
  return /^evaluation\/([^/]+)\//.exec(key)?.[1] ?? (step === null ? split : `${split} at step ${step}`)
}
