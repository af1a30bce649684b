import type { MetricsReading } from '@aworld-train/core'

/** Our names of a step's metrics, and AReaL 1.0.4's or the bridge's. */
const renamed: Readonly<Record<string, string>> = {
  rewardMean: 'reward',
  responseTokens: 'completions/mean_length',
  loss: 'ppo_actor/update/actor_loss/avg',
  gradientNorm: 'ppo_actor/update/grad_norm',
  entropy: 'ppo_actor/update/entropy/avg',
  learningRate: 'ppo_actor/update/lr',
}

/** Phases of a step, and the timers of them. */
const timers: Readonly<Record<string, string>> = {
  rollout: 'timeperf/rollout',
  logprobs: 'timeperf/recompute_logp',
  update: 'timeperf/train_step',
  publish: 'timeperf/update_weights',
  validation: 'timing_s/evaluation',
  checkpoint: 'timing_s/checkpoint',
}

/** What a line of the bridge's metrics says: a step with its evaluation and checkpoint, or the evaluation before training. */
export function readArealMetrics(numbers: Readonly<Record<string, number>>): MetricsReading {
  const pick = (names: Readonly<Record<string, string>>) =>
    Object.entries(names).flatMap(([ours, theirs]) => {
      const value = numbers[theirs]
      return value === undefined ? [] : [[ours, value] as const]
    })
  const phasesMs = Object.fromEntries(pick(timers).map(([phase, seconds]) => [phase, seconds * 1000]))
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
