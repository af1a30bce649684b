import type { PythonTrainer, Reward, TrainerConfig, TrainerPlan } from '@aworld-train/core'
import type { Findings, Launchers, NamedReward, TrainerSettings, TrainingPlan } from '@aworld-train/training'
import type { FoundPython } from '../environment/find-python.ts'

/** A framework whose settings on our side are known here. */
export type Trainer = PythonTrainer<TrainerSettings>

/** Everything that a run with a framework needs. Its starting model is a folder, or a name on the Hub. */
export interface PythonTrainingPlan extends TrainingPlan {
  readonly trainer: Trainer
  readonly config: TrainerConfig<TrainerSettings>
  /** Sentences for the user from the checks and about the configuration that the framework would start with. */
  readonly notes: readonly string[]
  /** Findings of the checks alone. */
  readonly findings: Findings
  readonly launchers: Launchers
  /** `null`: the framework scores with its own reward. With `reward.native` it scores with this one. */
  readonly reward: NamedReward | null
  /** Resolves to `null` if nothing is scored on this side. */
  readonly createReward: () => Promise<Reward | null>
  readonly python: FoundPython
  /** The framework's plan as the checks made it, without a run directory. */
  readonly planned: TrainerPlan
}
