import type { AgentProgram, Reward } from '@aworld-train/core'
import type { FoundPython, VerlConfig, VerlRun } from '@aworld-train/trainer-verl'
import type { LoadedDataset } from '@aworld-train/training'
import type { NamedReward } from '../checks/named-reward.ts'

/** What the checks found out: everything a run with verl needs, nothing written yet. */
export interface VerlTrainingPlan {
  readonly name: string
  readonly config: VerlConfig
  /** What is to be said once: of the checks, and of what verl would be started with. */
  readonly notes: readonly string[]
  /** Those of the checks alone. */
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
  /** `null`: nothing is scored on this side. */
  readonly createReward: () => Promise<Reward | null>
  /** Folder of the starting model, a name on the Hub, or `null` when the warm-up makes it. */
  readonly model: string | null
  readonly warmUp: string | null
  readonly python: FoundPython
}
