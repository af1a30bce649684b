import type { DrivenRun } from '@aworld-train/core'
import type { VerlConfig, VerlKey } from './verl-config.ts'

/** Collects derived keys. */
export interface Derivation {
  readonly keys: Map<string, VerlKey>
  readonly notes: string[]
  readonly problems: string[]
}

/** What a rule knows of a run, and how it sets keys. */
export interface DerivationContext extends Derivation {
  readonly config: VerlConfig
  readonly run: DrivenRun
  /** Variables of verl's processes besides those of a launch. */
  readonly environment: Readonly<Record<string, string>>
  /** The user's value of a key, else verl's default. */
  value(path: string): unknown
  isSet(path: string): boolean
  /** Sets a key that the user left out. */
  fill(path: string, value: unknown, why: string): void
  /** Sets a key that the user cannot choose; a different value of the user's is reported. */
  override(path: string, value: unknown, why: string): void
}
