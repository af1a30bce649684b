import type { InstalledVerl, ReadKeys, WrittenKeys } from './installed-verl.ts'
import type { VerlKey } from './verl-key.ts'
import type { VerlSettings } from './verl-settings.ts'

export type { KeyOrigin, VerlKey } from './verl-key.ts'

/** A YAML or JSON file, a launch script (`.sh`), Hydra overrides, or an object. */
export type VerlConfigSource = string | readonly string[] | Readonly<Record<string, unknown>> | undefined

/** The configuration as the user wrote it, which is kept in the run directory. */
export interface ConfigText {
  readonly kind: 'file' | 'script' | 'overrides' | 'object' | 'none'
  readonly file: string | null
  readonly text: string
}

export interface ReadVerlConfigOptions {
  /** Overrides that stand behind the others, as the arguments of a script do. */
  readonly arguments?: readonly string[]
  /** Environment for the variables of a script; that of the process by default. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Folder that relative paths of a configuration that is no file are resolved from; the working directory by default. */
  readonly baseDirectory?: string
  /** Has the installed verl read the keys. `python` is the interpreter that the configuration names; resolves with `null` where no verl is installed. */
  readonly verl?: (python: string | null, written: WrittenKeys) => Promise<ReadKeys | null>
}

/** A configuration as it was read: verl's keys, and ours. */
export interface VerlConfig {
  readonly source: ConfigText
  /** Folder that relative paths in it are resolved from. */
  readonly directory: string
  /** Keys by their dotted path, in the order of the configuration; only those that the user set. */
  readonly keys: ReadonlyMap<string, VerlKey>
  readonly settings: VerlSettings
  /** Absolute path of the agent.yaml that verl's keys name, and the entry of it; `null` where they name none. */
  readonly agentFile: string | null
  readonly agentName: string | null
  /** Variables that a script exports. */
  readonly environment: Readonly<Record<string, string>>
  /** `null` where no verl is installed: its keys are as they were written then, unchecked. */
  readonly verl: InstalledVerl | null
  /** Sentences for the user about translated keys and keys without effect. */
  readonly notes: readonly string[]
  /** Whole sentences; empty when the configuration can be used. */
  readonly problems: readonly string[]
}

/** The results of a run's checks for the parts around the configuration. */
export interface VerlRun {
  /** Absolute path of the run directory. */
  readonly path: string
  readonly name: string
  readonly agent: {
    readonly name: string
    /** `./file.ts#export`, relative to `directory` or absolute; `null` for a live object. */
    readonly module: string | null
    readonly directory: string
    /** Text of the user's agent.yaml, where there is one. */
    readonly source: string | null
  }
  /** Files that verl reads; `null` leaves what the configuration names. Counts are rows. */
  readonly train: { readonly path: string; readonly rows: number } | null
  readonly test: { readonly path: string; readonly rows: number } | null
  /** A reward that a file holds, such as `{ path: '/…/reward.ts', name: 'gaiaRewardFunc' }`; `null`: a function, or none. */
  readonly reward: { readonly path: string; readonly name: string | null } | null
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
  /** Unique id of this start of verl; the run script takes a random one when it is absent. */
  readonly incarnation?: string
  /** Longest conversation of the model in tokens, where its config.json is known. */
  readonly contextLength?: number | null
  /** The interpreter that has verl; the run script looks for `python3` where it is absent. */
  readonly python?: string
  /** Set when a run is resumed. */
  readonly resume?: boolean
}

/** Everything that is needed to start verl: the complete overrides, and the reason for each. */
export interface VerlPlan {
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
  readonly run: VerlRun
  readonly verl: InstalledVerl
  /** Folder of verl's checkpoints: `trainer.default_local_dir`. */
  readonly checkpoints: string
  /** Training steps in all; `null` where the number of rows is not known. */
  readonly steps: number | null
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}
