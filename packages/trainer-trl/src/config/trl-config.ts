import type { DrivenConfig, DrivenPlan } from '@aworld-train/core'
import type { Stratify } from '@aworld-train/training'
import type { TrlSettings } from './trl-settings.ts'

/** Fields of GRPOConfig by name. */
export type TrlFields = Readonly<Record<string, unknown>>

/** A configuration in GRPOConfig's fields, in ours, or both. */
export interface TrlConfig extends DrivenConfig<TrlSettings> {
  readonly fields: TrlFields
  /** Fields of peft's LoraConfig; `null` trains every weight. */
  readonly lora: TrlFields | null
  /** How tasks are drawn for a batch; `null` leaves it to TRL. */
  readonly stratify: Stratify | null
  /** Whether sampler and trainer round alike. */
  readonly exact: boolean
}

/** What `python -m aworld_train_bridge.trl` is started with; its shape stands in that module. */
export interface TrlPlan extends DrivenPlan {
  readonly path: string
  readonly model: string
  readonly fields: TrlFields
  readonly lora: TrlFields | null
  readonly stratify: Stratify | null
  readonly seed: number
  readonly templateArguments: TrlFields
  readonly deadlineSeconds: number | null
}
