import type { VerlConfig, VerlKey, VerlRun } from '../config/verl-config.ts'

/** What a check looks at. */
export interface TrapContext {
  /** The whole tree with references resolved. */
  readonly tree: Readonly<Record<string, unknown>>
  /** Keys that are not verl's default. */
  readonly keys: ReadonlyMap<string, VerlKey>
  readonly config: VerlConfig
  readonly run: VerlRun
  /** What the tree has at a dotted path. */
  at(path: string): unknown
  number(path: string): number
}

/** One way in which a run with verl goes wrong without a word, or late. */
export interface Trap {
  readonly name: string
  /** `error`: the run would fail or train something else. `warning`: it goes on, perhaps not as meant. */
  readonly severity: 'error' | 'warning'
  /** A sentence that says what is set, what follows and what to do; `null` where all is well. */
  check(context: TrapContext): string | null
}
