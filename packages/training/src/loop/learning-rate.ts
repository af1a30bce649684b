export interface LearningRateSchedule {
  readonly learningRate: number
  readonly warmupSteps: number
  /** Fraction of the rate that remains at the last step; 1 keeps it constant. */
  readonly finalLearningRateFraction: number
}

/**
 * The rate of a step (1-based). It rises linearly from 0 during the warm-up, then changes linearly to the final fraction at the last step.
 */
export function learningRateAt(step: number, steps: number, schedule: LearningRateSchedule): number {
  const { learningRate, warmupSteps, finalLearningRateFraction } = schedule
  if (step < warmupSteps) return (learningRate * step) / warmupSteps
  const decaySteps = Math.max(1, steps - Math.max(1, warmupSteps))
  const progress = Math.min(1, Math.max(0, step - Math.max(1, warmupSteps)) / decaySteps)
  return learningRate * (1 - (1 - finalLearningRateFraction) * progress)
}
