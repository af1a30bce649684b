import type { GrpoFramework } from '../../hugging-face/grpo-framework.ts'
import type { GrpoPlan } from '../../hugging-face/plan-grpo.ts'
import type { GrpoConfig } from '../../hugging-face/read-grpo-config.ts'
import { askConfiguration } from '../../shared/process/ask-configuration.ts'
import { TrlSettings } from './trl-settings.ts'

/** A configuration in GRPOConfig's fields, with those of peft in `lora`, in our keys, or both. */
export type TrlConfig = GrpoConfig<TrlSettings>

/** The plan that `python -m aworld_train_bridge.trl` is started with. That module defines its shape. */
export type TrlPlan = GrpoPlan

export const trlFramework: GrpoFramework<TrlSettings> = {
  name: 'trl',
  title: 'TRL',
  settings: TrlSettings,
  batchRows: 8,
  shuffleKey: 'shuffle_dataset',
  // TRL takes a fraction of all steps under the name of the steps.
  warmupFractionKey: 'warmup_steps',
  entropyKey: 'entropy_coef',
  leaveOneOut: null,
  section: 'lora',
  ask: ({ configuration, section, names }, { python, signal }) =>
    askConfiguration({ configuration, lora: section, names }, { python, module: 'aworld_train_bridge.trl', title: 'TRL', signal }),
}
