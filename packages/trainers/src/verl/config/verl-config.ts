import type { PlanInputs, TrainerConfig, TrainerPlan } from '@aworld-train/core'
import type { InstalledVerl, ReadKeys, WrittenKeys } from './installed-verl.ts'
import type { VerlKey } from './verl-key.ts'
import type { VerlSettings } from './verl-settings.ts'

export type { KeyOrigin, VerlKey } from './verl-key.ts'

/** A YAML or JSON file, Hydra overrides, or an object. */
export type VerlConfigSource = string | readonly string[] | Readonly<Record<string, unknown>> | undefined

/** The configuration as the user wrote it. It is kept in the run directory. */
export interface ConfigText {
  readonly kind: 'file' | 'overrides' | 'object' | 'none'
  readonly file: string | null
  readonly text: string
}

export interface ReadVerlConfigOptions {
  /** Overrides after the others, which they replace. */
  readonly arguments?: readonly string[]
  /** Base folder for relative paths of a configuration that is not a file. Default: the working directory. */
  readonly baseDirectory?: string
  /** Keys at the top of a configuration that belong to one trainer each. */
  readonly sections?: readonly string[] | undefined
  /**
   * Has the installed verl read the keys. `python` is the interpreter that the configuration names. Resolves to `null` if no verl is
   * installed.
   */
  readonly verl?: (python: string | null, written: WrittenKeys) => Promise<ReadKeys | null>
}

/** A configuration as it was read, in verl's keys and ours. */
export interface VerlConfig extends TrainerConfig<VerlSettings> {
  readonly source: ConfigText
  /** The keys that the user set, by their dotted path, in the order of the configuration. */
  readonly keys: ReadonlyMap<string, VerlKey>
  /** Absolute path of the agent.yaml that verl's keys name, and its entry; `null` if they name none. */
  readonly agentFile: string | null
  readonly agentName: string | null
  /** `null` if no verl is installed. Then the keys are as they were written, and unchecked. */
  readonly verl: InstalledVerl | null
}

/** All data for a start of verl: the complete overrides, and the reason for each. */
export interface VerlPlan extends TrainerPlan {
  /** Command-line overrides of `python -m verl.trainer.main_ppo`, in order. */
  readonly overrides: readonly string[]
  /** Keys that are not verl's default, by dotted path. */
  readonly keys: ReadonlyMap<string, VerlKey>
  /** The whole tree with references resolved. */
  readonly tree: Readonly<Record<string, unknown>>
  readonly settings: VerlSettings
  /** Variables of verl's processes besides those of the channel. */
  readonly environment: Readonly<Record<string, string>>
  readonly config: VerlConfig
  readonly run: PlanInputs
  readonly verl: InstalledVerl
}
