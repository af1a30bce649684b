import type { MetricsReading } from '@aworld-train/core'

export interface MetricNames {
  /** The framework's metric by our name of it. */
  readonly metrics: Readonly<Record<string, string>>
  /** The framework's timer of each phase, in seconds. */
  readonly timers: Readonly<Record<string, string>>
}

/**
 * Reads the lines of a framework's module: a step with its evaluation and checkpoint, or the evaluation before training. The bridge adds
 * `timing_s/step` to every step, `timing_s/checkpoint` if a checkpoint was written, and {eval_reward, eval_failed, eval_unscored} to an
 * evaluation.
 */
export function timedMetricsReader({ metrics: named, timers }: MetricNames) {
  return (numbers: Readonly<Record<string, number>>): MetricsReading => {
    const pick = (names: Readonly<Record<string, string>>) =>
      Object.entries(names).flatMap(([ours, theirs]) => {
        const value = numbers[theirs]
        return value === undefined ? [] : [[ours, value] as const]
      })
    const phasesMs = Object.fromEntries(pick(timers).map(([phase, seconds]) => [phase, seconds * 1000]))
    const reward = numbers['eval_reward']
    const metrics = {
      ...Object.fromEntries(pick(named)),
      ...Object.fromEntries(Object.entries(phasesMs).map(([phase, ms]) => [`${phase}Ms`, ms])),
      ...numbers,
    }
    return {
      step: 'timing_s/step' in numbers ? { metrics, phasesMs, saved: 'timing_s/checkpoint' in numbers } : null,
      evaluation:
        reward === undefined
          ? null
          : { reward, failed: numbers['eval_failed'] ?? 0, ...(numbers['eval_unscored'] && { unscored: numbers['eval_unscored'] }) },
    }
  }
}
