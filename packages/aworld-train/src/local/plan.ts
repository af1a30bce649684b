import type { AgentProgram, Environment, PolicyLoss, Reward } from '@aworld-train/core'
import type { LoadedAgent } from '@aworld-train/run'
import type { LoadedDataset, LocalConfig, RewardSource } from '@aworld-train/training'
import type { ChosenPolicy } from '../policies/policy.ts'

/** The result of the checks: everything that a run needs. Nothing is written at this point. */
export interface LocalPlan {
  readonly name: string
  readonly config: LocalConfig
  /** Sentences for the user, such as that keys of a framework's configuration have no effect here. */
  readonly notes: readonly string[]
  /** Sentences about settings that probably mean something else. */
  readonly warnings: readonly string[]
  readonly seed: number
  readonly program: AgentProgram & { close?(): Promise<void> }
  readonly agent: LoadedAgent
  readonly agentDirectory: string
  readonly agentModule: string | null
  /** Absolute paths of the files that name the agent; none for an object. */
  readonly agentFiles: readonly string[]
  readonly train: LoadedDataset
  readonly validation: LoadedDataset | null
  readonly test: LoadedDataset | null
  readonly rewardSource: RewardSource
  readonly rewardDirectory: string
  /** `null` for the loss in the box. */
  readonly loss: PolicyLoss | null
  readonly createEnvironment: () => Environment
  readonly createReward: () => Promise<Reward>
  /** Folder of the starting model; `null` if the warm-up makes it. */
  readonly model: string | null
  readonly warmUp: string | null
  readonly configDirectory: string
  readonly policy: ChosenPolicy
}
