import type { DrivenConfig, DrivenPlan } from '@aworld-train/core'
import type { Stratify } from '@aworld-train/training'
import type { SwiftSettings } from './swift-settings.ts'

/** Arguments of `swift rlhf` by name. */
export type SwiftFields = Readonly<Record<string, unknown>>

/** A configuration in arguments of `swift rlhf`, in ours, or both. */
export interface SwiftConfig extends DrivenConfig<SwiftSettings> {
  readonly fields: SwiftFields
  /** How tasks are drawn for a batch; `null` leaves it to ms-swift. */
  readonly stratify: Stratify | null
  /** Whether sampler and trainer round alike. */
  readonly exact: boolean
}

/** What `python -m aworld_train_bridge.swift` is started with; its shape stands in that module. */
export interface SwiftPlan extends DrivenPlan {
  readonly path: string
  readonly model: string
  readonly fields: SwiftFields
  readonly stratify: Stratify | null
  readonly seed: number
  readonly templateArguments: SwiftFields
  readonly deadlineSeconds: number | null
}
