import type { AgentProgram, Environment, PlanInputs, PythonTrainer, Reward, TrainerConfig, TrainerPlan } from '@aworld-train/core'
import type { FoundPython } from '@aworld-train/python-bridge'
import type { LoadedDataset, TrainerSettings } from '@aworld-train/training'
import type { Launchers } from '../executor/open-executor.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import type { Findings } from '../inputs/named-dataset.ts'
import type { NamedReward } from '../inputs/named-reward.ts'

/** A framework whose settings on our side are known here. */
export type Trainer = PythonTrainer<TrainerSettings>

/** The result of the checks: everything that a run with a framework needs. Nothing is written at this point. */
export interface PythonTrainingPlan {
  readonly trainer: Trainer
  readonly name: string
  readonly config: TrainerConfig<TrainerSettings>
  /** Sentences for the user from the checks and about the configuration that the framework would start with. */
  readonly notes: readonly string[]
  /** Findings of the checks alone. */
  readonly findings: Findings
  readonly seed: number
  readonly program: AgentProgram & { close?(): Promise<void> }
  readonly agent: PlanInputs['agent']
  readonly loadedAgent: LoadedAgent
  readonly launchers: Launchers
  readonly train: LoadedDataset
  readonly test: LoadedDataset | null
  /** `null`: the framework scores with its own reward. With `reward.native` it scores with this one. */
  readonly reward: NamedReward | null
  readonly createEnvironment: () => Environment
  /** Resolves to `null` if nothing is scored on this side. */
  readonly createReward: () => Promise<Reward | null>
  /** Folder of the starting model, a name on the Hub, or `null` when the warm-up makes it. */
  readonly model: string | null
  readonly warmUp: string | null
  readonly python: FoundPython
  /** The framework's plan as the checks made it, without a run directory. */
  readonly planned: TrainerPlan
}
