import type { PolicyLoss, Reward } from '@aworld-train/core'
import type { LoadedDataset, LocalConfig, PolicyModel, RewardSource, TrainingPlan } from '@aworld-train/training'
import type { ChosenPolicy } from '../policies/policy.ts'

/** A policy of a run, before it is open. Its starting model is a folder; `null` if the warm-up makes it. */
export interface PlannedPolicy extends Pick<TrainingPlan, 'model' | 'warmUp'> {
  /** The name that agents ask for, among several policies; `null` for one alone. */
  readonly name: string | null
  /** How it is prompted. */
  readonly settings: PolicyModel
  readonly trainable: boolean
  /** Its learning rate as a factor of the training's. */
  readonly rateFactor: number
  readonly chosen: ChosenPolicy
}

/** Everything that a run of our own loop needs. */
export interface LocalPlan extends Omit<TrainingPlan, 'model' | 'warmUp'> {
  readonly config: LocalConfig
  /** Sentences for the user, such as that keys of a framework's configuration have no effect here. */
  readonly notes: readonly string[]
  /** Sentences about settings that probably mean something else. */
  readonly warnings: readonly string[]
  readonly validation: LoadedDataset | null
  readonly rewardSource: RewardSource
  readonly rewardDirectory: string
  readonly frozenModels: readonly string[]
  /** `null` for the loss in the box. */
  readonly loss: PolicyLoss | null
  readonly createReward: () => Promise<Reward>
  readonly configDirectory: string
  /** In the order of the configuration. */
  readonly policies: readonly [PlannedPolicy, ...PlannedPolicy[]]
}
