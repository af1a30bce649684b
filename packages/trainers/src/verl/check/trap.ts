import type { PlanInputs } from '@aworld-train/core'
import type { VerlConfig, VerlKey } from '../config/verl-config.ts'

/** The input of a check. */
export interface TrapContext {
  /** The whole tree with references resolved. */
  readonly tree: Readonly<Record<string, unknown>>
  /** Keys that are not verl's default. */
  readonly keys: ReadonlyMap<string, VerlKey>
  readonly config: VerlConfig
  readonly run: PlanInputs
  /** The value in the tree at a dotted path. */
  at(path: string): unknown
  number(path: string): number
}

/** One way in which a run with verl fails silently or late. */
export interface Trap {
  readonly name: string
  /** `error`: the run would fail or train something else. `warning`: it continues, but perhaps not as intended. */
  readonly severity: 'error' | 'warning'
  /** Returns a sentence with the setting, its consequence and the remedy; `null` if nothing is wrong. */
  check(context: TrapContext): string | null
}
