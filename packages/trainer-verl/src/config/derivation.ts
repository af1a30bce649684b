import type { VerlConfig, VerlKey, VerlRun } from './verl-config.ts'

/** Where derived keys are gathered. */
export interface Derivation {
  readonly keys: Map<string, VerlKey>
  readonly notes: string[]
  readonly problems: string[]
}

/** What a rule sees of a run, and how it sets keys. */
export interface DerivationContext extends Derivation {
  readonly config: VerlConfig
  readonly run: VerlRun
  /** Variables of verl's processes besides those of a launch. */
  readonly environment: Readonly<Record<string, string>>
  /** What the user set, else verl's default. */
  value(path: string): unknown
  isSet(path: string): boolean
  /** Sets a key that the user left out. */
  fill(path: string, value: unknown, why: string): void
  /** Sets a key that is not the user's to set; another value of theirs is told. */
  override(path: string, value: unknown, why: string): void
}
