import type { ModuleConfig, ModulePlan } from '../../shared/training/module-config.ts'
import type { ArealSettings } from './areal-settings.ts'

/** A configuration in AReaL's keys, nested as in its YAML, in ours, or both. */
export interface ArealConfig extends ModuleConfig<ArealSettings> {
  /** Steps in which the learning rate rises. AReaL counts a fraction of all steps. */
  readonly warmupSteps: number | null
  /** Number of passes of an update over its batch. */
  readonly passes: number
}

/** The plan that `python -m aworld_train_bridge.areal` is started with. That module defines its shape. */
export interface ArealPlan extends ModulePlan {
  /** Whether tasks are drawn here, for as many steps as there are; otherwise AReaL draws them, for its epochs. */
  readonly drawn: boolean
  readonly before: boolean
  readonly passes: number
  readonly keepCheckpoints: number | null
}
