import type { PlanInputs } from '@aworld-train/core'
import type { VerlConfig, VerlKey } from './verl-config.ts'

/** Collects derived keys. */
export interface Derivation {
  readonly keys: Map<string, VerlKey>
  readonly notes: string[]
  readonly problems: string[]
}

/** A rule's view of a run, and its means to set keys. */
export interface DerivationContext extends Derivation {
  readonly config: VerlConfig
  readonly run: PlanInputs
  /** Variables of verl's processes besides those of a launch. */
  readonly environment: Readonly<Record<string, string>>
  /** The user's value of a key, or else verl's default. */
  value(path: string): unknown
  isSet(path: string): boolean
  /** Sets a key that the user left out. */
  fill(path: string, value: unknown, why: string): void
  /** Sets a key that the user cannot choose. A different value of the user's is reported. */
  override(path: string, value: unknown, why: string): void
}
