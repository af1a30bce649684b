import { timedMetricsReader } from '../../shared/training/timed-metrics.ts'

/** Names of AReaL 1.0.4 and of the bridge. */
export const readArealMetrics = timedMetricsReader({
  metrics: {
    rewardMean: 'reward',
    responseTokens: 'completions/mean_length',
    loss: 'ppo_actor/update/actor_loss/avg',
    gradientNorm: 'ppo_actor/update/grad_norm',
    entropy: 'ppo_actor/update/entropy/avg',
    learningRate: 'ppo_actor/update/lr',
  },
  timers: {
    rollout: 'timeperf/rollout',
    logprobs: 'timeperf/recompute_logp',
    update: 'timeperf/train_step',
    publish: 'timeperf/update_weights',
    validation: 'timing_s/evaluation',
    checkpoint: 'timing_s/checkpoint',
  },
})
