import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Folder to put on PYTHONPATH: it holds the Python package `aworld_train_bridge`. */
export const bridgeDirectory: string = fileURLToPath(new URL('../python', import.meta.url))

/** `_target_` of verl's agent loop that hands rollouts to AWorld Train (verl/experimental/agent_loop, 0.9.1). */
export const verlAgentLoopTarget = 'aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop'

/** Module for VERL_USE_EXTERNAL_MODULES, which every verl process imports (verl/__init__.py, 0.9.1). */
export const verlPluginModule = 'aworld_train_bridge.verl.plugin'

export interface ReservedColumns {
  /** Columns that would replace what the agent loop returned, each with what it would replace. */
  readonly overwritesOutput: Readonly<Record<string, string>>
  /** Columns that verl writes itself, each with what it holds there. */
  readonly setByTrainer: Readonly<Record<string, string>>
}

/** Column names that a dataset for verl must not have (verl/trainer/ppo/v1/agent_loop_tq.py, 0.9.1). */
export const verlReservedColumns: ReservedColumns = JSON.parse(
  readFileSync(new URL('../python/aworld_train_bridge/verl/reserved_columns.json', import.meta.url), 'utf8'),
)
