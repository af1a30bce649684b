import type { KeyTree } from '@aworld-train/training'
import { firstGpu } from '../../hugging-face/first-gpu.ts'
import type { GrpoFramework } from '../../hugging-face/grpo-framework.ts'
import { swiftVariables } from '../run/swift-variables.ts'

export const swiftFramework: GrpoFramework = {
  name: 'swift',
  title: 'ms-swift',
  batchRows: 1,
  shuffleKey: 'train_dataloader_shuffle',
  warmupFractionKey: 'warmup_ratio',
  entropyKey: null,
  leaveOneOut: { advantage_estimator: 'rloo', scale_rewards: 'none', kl_in_reward: false },
  section: null,
  complete: withBatch,
  notesOf: notesOfParts,
  variables: () => ({ ...swiftVariables, CUDA_VISIBLE_DEVICES: firstGpu(process.env) }),
}

/** swift/rlhf_trainers/grpo_trainer.py, WINDOW_NORMALIZED_LOSS_TYPES, 4.6.0. */
const lossesByTokens: readonly unknown[] = ['cispo', 'dapo', 'fipo']

/** Notes that swift divides by the tokens of all updates of a batch, while TRL divides by those of one update. */
function notesOfParts(fields: KeyTree, parts: number): string[] {
  if (parts <= 1 || !lossesByTokens.includes(fields['loss_type'])) return []
  return [
    `loss_type ${fields['loss_type']} with ${parts} updates of a batch: ms-swift divides the loss of each by the trained tokens of the whole batch, so that gradients are about ${parts} times smaller than in one update. AdamW evens that out, clipping does not: divide max_grad_norm by ${parts} to clip as before.`,
  ]
}

const batchKeys = ['per_device_train_batch_size', 'generation_batch_size', 'steps_per_generation', 'gradient_accumulation_steps']

/** Fills in a batch of one group if the user sets none, because swift's own batch is one row, which no group fits. */
function withBatch(fields: KeyTree): KeyTree {
  if (batchKeys.some((key) => fields[key] !== undefined)) return fields
  return { ...fields, per_device_train_batch_size: fields['num_generations'] ?? 8 }
}
