import type { MetricsReading } from '@aworld-train/core'

/** Our names of a step's metrics, and ms-swift 4.6's. */
const renamed: Readonly<Record<string, string>> = {
  rewardMean: 'reward',
  responseTokens: 'completions/mean_length',
  loss: 'loss',
  gradientNorm: 'grad_norm',
  entropy: 'entropy',
  klDivergence: 'kl',
  learningRate: 'learning_rate',
}

/** Phases of a step, and the bridge's timers of them. */
const timers: Readonly<Record<string, string>> = {
  rollout: 'rollout',
  update: 'update',
  validation: 'evaluation',
  checkpoint: 'checkpoint',
}

/** What a line of the bridge's metrics says: a step with its evaluation and checkpoint, or the evaluation before training. */
export function readSwiftMetrics(numbers: Readonly<Record<string, number>>): MetricsReading {
  const pick = (names: Readonly<Record<string, string>>, prefix = '') =>
    Object.entries(names).flatMap(([ours, theirs]) => {
      const value = numbers[prefix + theirs]
      return value === undefined ? [] : [[ours, value] as const]
    })
  const phasesMs = Object.fromEntries(pick(timers, 'timing_s/').map(([phase, seconds]) => [phase, seconds * 1000]))
  const reward = numbers['eval_reward']
  const metrics = {
    ...Object.fromEntries(pick(renamed)),
    ...Object.fromEntries(Object.entries(phasesMs).map(([phase, ms]) => [`${phase}Ms`, ms])),
    ...numbers,
  }
  return {
    step: 'timing_s/step' in numbers ? { metrics, phasesMs, saved: 'timing_s/checkpoint' in numbers } : null,
    evaluation: reward === undefined ? null : { reward, failed: numbers['eval_failed'] ?? 0 },
  }
}
