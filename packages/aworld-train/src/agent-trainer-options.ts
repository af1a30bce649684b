import type { DatasetSource, RewardSource, RunOptions } from '@aworld-train/training'
import type { TrainableAgent } from './load/load-agent.ts'
import type { RunDashboardOptions } from './run-dashboard.ts'

/** The five modules of a training, and where it writes. Paths are relative to `baseDirectory`. */
export interface AgentTrainerOptions extends RunOptions {
  readonly agent: TrainableAgent
  readonly trainDataset?: DatasetSource | undefined
  readonly testDataset?: DatasetSource | undefined
  readonly rewardFunc?: RewardSource | undefined
  /** Path of a YAML or JSON file, or an object. */
  readonly config?: string | object | undefined
  /** Parent folder of runs. Default: `runs`. */
  readonly runPath?: string | undefined
  /** Shows the run in a browser while it trains. Default `false`, because a library opens no port unasked. */
  readonly dashboard?: boolean | RunDashboardOptions | undefined
  /** Default `verl`; `local` is the engine in the box. */
  readonly trainEngineName?: string | undefined
}
