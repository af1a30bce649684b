import type { AgentProgram, Environment, Reward } from '@aworld-train/core'
import type { NamedReward } from '@aworld-train/run'
import type { FoundPython, VerlConfig, VerlPlan, VerlRun } from '@aworld-train/trainer-verl'
import type { LoadedDataset } from '@aworld-train/training'

/** The result of the checks: everything that a run with verl needs. Nothing is written yet. */
export interface VerlTrainingPlan {
  readonly name: string
  readonly config: VerlConfig
  /** Sentences for the user, from the checks and about the configuration that verl would be started with. */
  readonly notes: readonly string[]
  /** The sentences of the checks alone. */
  readonly findings: readonly string[]
  readonly seed: number
  readonly program: AgentProgram & { close?(): Promise<void> }
  readonly agent: VerlRun['agent']
  /** Absolute paths of the files that name the agent; none for an object. */
  readonly agentFiles: readonly string[]
  readonly train: LoadedDataset
  readonly test: LoadedDataset | null
  /** `null`: verl scores with what it has; where `reward.native` is set, verl scores with this one. */
  readonly reward: NamedReward | null
  readonly createEnvironment: () => Environment
  /** `null`: nothing is scored on this side. */
  readonly createReward: () => Promise<Reward | null>
  /** Folder of the starting model, a name on the Hub, or `null` when the warm-up makes it. */
  readonly model: string | null
  readonly warmUp: string | null
  readonly python: FoundPython
  /** verl's tree as the checks composed it. */
  readonly tree: VerlPlan['tree']
}
