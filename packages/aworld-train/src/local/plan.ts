import type { PolicyLoss, Reward } from '@aworld-train/core'
import type { LoadedDataset, LocalConfig, RewardSource, TrainingPlan } from '@aworld-train/training'
import type { ChosenPolicy } from '../policies/policy.ts'

/** Everything that a run of our own loop needs. Its starting model is a folder. */
export interface LocalPlan extends TrainingPlan {
  readonly config: LocalConfig
  /** Sentences for the user, such as that keys of a framework's configuration have no effect here. */
  readonly notes: readonly string[]
  /** Sentences about settings that probably mean something else. */
  readonly warnings: readonly string[]
  readonly validation: LoadedDataset | null
  readonly rewardSource: RewardSource
  readonly rewardDirectory: string
  /** `null` for the loss in the box. */
  readonly loss: PolicyLoss | null
  readonly createReward: () => Promise<Reward>
  readonly configDirectory: string
  readonly policy: ChosenPolicy
}
