import type { LossDefinition } from '@aworld-train/core'

export const lossKinds = ['sft', 'ppo-clip', 'linear'] as const satisfies readonly LossDefinition['kind'][]

/** Doubles of the settings block of the arena, which the commands of an update read and write. */
export const setting = {
  /** Its place in `lossKinds`. */
  lossKind: 0,
  clipLow: 1,
  clipHigh: 2,
  klCoefficient: 3,
  entropyCoefficient: 4,
  inverseTemperature: 5,
  learningRate: 6,
  beta1: 7,
  beta2: 8,
  epsilon: 9,
  weightDecay: 10,
  maxGradNorm: 11,
  /** Number of this update, from 1. */
  step: 12,
  hasReference: 13,
  /** Written by `apply`: norm of the gradient before clipping, and whether the weights were changed. */
  gradNorm: 16,
  applied: 17,
} as const

/** Doubles of one shard's results: sums over its trained tokens. */
export const shardResult = { loss: 0, kl: 1, entropy: 2, clipped: 3, tokens: 4 } as const
