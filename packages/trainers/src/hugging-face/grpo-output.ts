import type { ConsoleReader } from '@aworld-train/core'
import { commonFailures, createFailureReader, torchFailures } from '../shared/process/failure-reader.ts'
import { folderCheckpoints } from '../shared/process/folder-checkpoints.ts'
import { timedMetricsReader } from '../shared/training/timed-metrics.ts'

/** Names of transformers' Trainer and of a GRPOTrainer, and the bridge's timers. */
export const readGrpoMetrics = timedMetricsReader({
  metrics: {
    rewardMean: 'reward',
    responseTokens: 'completions/mean_length',
    loss: 'loss',
    gradientNorm: 'grad_norm',
    entropy: 'entropy',
    klDivergence: 'kl',
    learningRate: 'learning_rate',
  },
  timers: {
    rollout: 'timing_s/rollout',
    update: 'timing_s/update',
    validation: 'timing_s/evaluation',
    checkpoint: 'timing_s/checkpoint',
  },
})

/** Checkpoints of transformers' Trainer, which writes trainer_state.json last (trainer.py, 5.23); an adapter is exported merged into its model. */
export const grpoCheckpoints = folderCheckpoints({
  prefix: 'checkpoint-',
  lastFile: 'trainer_state.json',
  frequencyKey: 'save_steps',
  exporter: (directory) => ['aworld_train_bridge.hugging_face.export_model', '--checkpoint', directory],
})

/** Known failures and their remedies, the most specific first. */
export const createGrpoConsoleReader = (trainer: string): ConsoleReader =>
  createFailureReader(trainer, [
    ...commonFailures(trainer),
    ...torchFailures({
      memory: 'per_device_train_batch_size, raising gradient_accumulation_steps for it, or max_completion_length',
      rate: 'learning_rate',
    }),
  ])
