import type { GrpoFramework } from '../../hugging-face/grpo-framework.ts'

export const trlFramework: GrpoFramework = {
  name: 'trl',
  title: 'TRL',
  batchRows: 8,
  shuffleKey: 'shuffle_dataset',
  // TRL takes a fraction of all steps under the name of the steps.
  warmupFractionKey: 'warmup_steps',
  entropyKey: 'entropy_coef',
  leaveOneOut: null,
  section: 'lora',
}
