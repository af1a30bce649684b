import type { AnswerKey, ErrorCode, RowSelection, TrainError, TrainingTask } from '@aworld-train/protocol'
import type { DrivenPython } from './driven-python.ts'
import type { TrainerFacts } from './trainer-facts.ts'

/**
 * A framework of Python that trains and submits rollouts over the channel: only what is its own. What all of them share is
 * in the packages `python-bridge` (finding and making its Python, its guarded process) and `run` (checks, run directory,
 * side of the agent, steps, ledger, report). `Settings` are ours, `Config` and `Plan` may hold more than their users here know.
 */
export interface DrivenTrainer<
  Settings = unknown,
  Config extends DrivenConfig<Settings> = DrivenConfig<Settings>,
  Plan extends DrivenPlan = DrivenPlan,
> {
  /** As in `trainEngineName`, in commands and for people. */
  readonly name: string
  readonly python: DrivenPython
  /** Names of its keys, for messages. */
  readonly keys: DrivenKeys
  /** Selections of a rollout's rows that its batches hold. */
  readonly rows: readonly RowSelection[]
  /** Reads a configuration in the framework's form, in ours, or both; `problems` holds everything that is wrong with it. */
  readConfig(source: string | object | undefined, options: ReadConfigOptions): Promise<Config>
  /** Plans a start, with everything that is filled in; `problems` holds what stands against it. Starts and writes nothing. */
  plan(config: Config, run: DrivenRun, options?: PlanOptions): Promise<Plan>
  /** What this machine lacks for a plan, as sentences: a framework may wait for GPUs for ever. */
  lacks(plan: Plan, options: MachineOptions & { readonly python: string }): Promise<readonly string[]>
  /** Writes what a person finds in the run directory and can run by hand; resolves to the names of the files. */
  writeFiles(plan: Plan, data: DrivenData): Promise<readonly string[]>
  /** The program of one start, and all variables of its processes. */
  command(plan: Plan, start: DrivenStart): DrivenCommand
  readonly output: DrivenOutput
  readonly checkpoints: DrivenCheckpoints
  /** For `doctor`: what the machine and its Python have that this framework needs; with a plan, what the plan needs. */
  checks(options: MachineOptions & { readonly plan: Plan | null; readonly python: string | null }): AsyncIterable<DrivenCheck>
  /** The configuration of a training of a tiny model on the processor, over that folder. */
  smokeConfig(model: string): object
  /** For the page of trainers, docs/4.reference/trainers.md. */
  readonly facts?: TrainerFacts | undefined
}

/** Names of keys, as a user writes them. */
export interface DrivenKeys {
  readonly model: string
  readonly trainFiles: string
  readonly reward: string
  /** Where the framework itself may score; `null` where it cannot. */
  readonly nativeReward: string | null
  /** Longest prompt and longest response, in tokens. */
  readonly promptLength: string
  readonly responseLength: string
  /** Leaves out prompts that are longer; `null` where nothing does. */
  readonly filterPrompts: string | null
}

export interface ReadConfigOptions {
  /** Folder that relative paths of a configuration that is no file are resolved from. */
  readonly baseDirectory: string
  /** Variables that a configuration may refer to. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Keys at the top of a configuration that belong to one trainer each, by its name; those of the others are left aside. */
  readonly sections?: readonly string[] | undefined
  /** What the caller sets in place of the configuration. */
  readonly overrides?: { readonly steps?: number | undefined; readonly seed?: number | undefined; readonly model?: string | undefined }
  /** The interpreter that has the framework; `named` is the one that the configuration names. Resolves with `null` where there is none. */
  readonly findPython?: (named: string | null) => Promise<string | null>
  readonly signal?: AbortSignal | undefined
}

/** A configuration as it was read. */
export interface DrivenConfig<Settings = unknown> {
  /** Folder that relative paths in it are resolved from. */
  readonly directory: string
  /** Our side of the run. */
  readonly settings: Settings
  /** Version of the framework that has read it; `null` where none is installed: its keys are unchecked then. */
  readonly version: string | null
  /** What it names, as it is written there. */
  readonly names: {
    readonly trainFiles: readonly string[]
    readonly testFiles: readonly string[]
    readonly promptKey: string
    /** The file of the reward, and the function in it. */
    readonly reward: { readonly path: string | null; readonly name: string | null }
    /** A folder, or a name of the Hugging Face hub. */
    readonly model: string | null
  }
  /** Whether the model's own chat template is used, which is checked then. */
  readonly usesModelTemplate: boolean
  /** Longest prompt in tokens, and whether longer ones are left out by the framework; `null` where that is not known. */
  readonly longestPrompt: { readonly tokens: number; readonly leftOut: boolean } | null
  /** What two configurations of the same training have in common. */
  readonly identity: unknown
  /** Sentences for the user. */
  readonly notes: readonly string[]
  /** Whole sentences; empty when the configuration can be used. */
  readonly problems: readonly string[]
  /** Sections of ours with a problem: what seems to be missing there is none of its own. */
  readonly failed?: readonly string[] | undefined
}

/** The results of a run's checks for the parts around the configuration. */
export interface DrivenRun {
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
  /** The model that the training begins with, in place of the configuration's. */
  readonly model?: string
  /** Files that the framework reads; `null` leaves what the configuration names. Counts are rows. */
  readonly train: { readonly path: string; readonly rows: number } | null
  readonly test: { readonly path: string; readonly rows: number } | null
  /** A reward that a file holds, such as `{ path: '/…/reward.ts', name: 'gaiaRewardFunc' }`; `null`: a function, or none. */
  readonly reward: { readonly path: string; readonly name: string | null } | null
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
  /** Unique id of this start. */
  readonly incarnation?: string
  /** Longest conversation of the model in tokens, where its config.json is known. */
  readonly contextLength?: number | null
  /** The interpreter that has the framework. */
  readonly python?: string
  /** Set when a run is resumed. */
  readonly resume?: boolean
}

export interface PlanOptions {
  /** Has the framework itself check what it would be started with, which takes its imports' time. */
  readonly validate?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Everything that is needed to start the framework. */
export interface DrivenPlan {
  /** Version of the framework. */
  readonly version: string
  /** Training steps in all; `null` where the number of rows is not known. */
  readonly steps: number | null
  /** Absolute path of the folder of its checkpoints. */
  readonly checkpoints: string
  /** Longest prompt and response of a row, in tokens. */
  readonly limits: { readonly maxPromptTokens: number; readonly maxResponseTokens: number }
  /** How it samples when it evaluates: rollouts of each task, and 0 as `topK` for all tokens. */
  readonly evaluation: { readonly samples: number; readonly temperature: number; readonly topP: number; readonly topK: number }
  /** How far logprobs of sampler and trainer may differ where they have the same weights; `null` where they compute in different ways. */
  readonly logprobTolerance: number | null
  readonly notes: readonly string[]
  /** Sentences about traps that do not keep it from training. */
  readonly warnings: readonly string[]
  readonly problems: readonly string[]
}

/** A dataset as it was loaded. */
export interface DrivenDataset {
  readonly tasks: readonly TrainingTask[]
  /** By task id. */
  readonly answers: ReadonlyMap<string, AnswerKey>
}

export interface DrivenData {
  readonly train: DrivenDataset | null
  readonly test: DrivenDataset | null
}

/** One start of the framework in a run. */
export interface DrivenStart {
  readonly python: string
  /** Values of the bridge's variables. */
  readonly bridge: BridgeVariables
  /** Variables of this process; what the framework reads of them is passed on. */
  readonly inherited: Readonly<Record<string, string | undefined>>
}

/** Values of the bridge's variables, by which a process of the framework finds this one. */
export interface BridgeVariables {
  readonly run: string
  /** Unique id of this start; every process of it carries it in its environment. */
  readonly incarnation: string
  /** The run directory. */
  readonly path: string
  readonly channelUrl: string
  readonly tokenFile: string
  /** The file that the framework's metrics are written to: a JSON object `{step, data}` a line. */
  readonly metricsFile: string
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
}

export interface DrivenCommand {
  /** Program and arguments. */
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Folders that are made before it, for its owner alone. */
  readonly folders: readonly string[]
  /** A folder that is removed after it; `null` for none. */
  readonly temporary: string | null
}

/** One line of the metrics; a number that is not finite is `null`. */
export interface MetricsLine {
  readonly step: number
  readonly data: Readonly<Record<string, unknown>>
}

/** What one line of metrics says; both where an evaluation follows a step. */
export interface MetricsReading {
  /** The metrics of a step under our names and the framework's, milliseconds by phase, and whether there is a checkpoint of it. */
  readonly step: {
    readonly metrics: Readonly<Record<string, number>>
    readonly phasesMs: Readonly<Record<string, number>>
    readonly saved: boolean
  } | null
  readonly evaluation: Readonly<Record<string, number>> | null
}

/** How the console and the metrics of a framework are read. */
export interface DrivenOutput {
  /** Lines before its first rollout, in their order. */
  readonly milestones: readonly RegExp[]
  /** Reads the finite numbers of a line. */
  readMetrics(numbers: Readonly<Record<string, number>>): MetricsReading
  /** A reader of one start. */
  createConsoleReader(): ConsoleReader
}

export interface TrainerFailure {
  readonly code: ErrorCode
  /** What happened and what to do. */
  readonly message: string
  /** The line of the console that shows the failure. */
  readonly line: string
}

/** Lines of a console that may say why a framework ended, or never begins. */
export interface ConsoleReader {
  /** One line without colours. */
  read(line: string): void
  /** The failure that the best line names; `null` where no line does. */
  failure(): TrainerFailure | null
  /** Asked while it runs: the error of one that cannot begin any more though it goes on trying. */
  stuck?(): TrainError | null
}

/** The checkpoints of a framework in the folder of a plan. */
export interface DrivenCheckpoints {
  /** The step that a start goes on from; 0 for none. */
  resumable(folder: string): number
  /** Steps that there is a checkpoint of, ascending. */
  steps(folder: string): readonly number[]
  /** Path of that of a step, relative to the run. */
  pathOf(step: number): string
  /** Writes one as a Hugging Face folder, which appears whole or not at all. CHECKPOINT_CORRUPT where there is none. */
  exportModel(options: ExportModelOptions): Promise<ExportedModel>
}

export interface ExportModelOptions {
  readonly python: string
  /** Folder of the checkpoints. */
  readonly checkpoints: string
  /** The newest by default. */
  readonly step?: number | undefined
  /** Folder to write; it must be absent or empty. */
  readonly target: string
  /** Folder that the training began with: its tokenizer and template are copied as they are. */
  readonly model?: string | undefined
  /** `keep`: as they were trained. Default `keep`. */
  readonly dtype?: 'keep' | 'bfloat16' | undefined
  readonly onLine?: ((line: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ExportedModel {
  readonly step: number
  readonly directory: string
}

export interface MachineOptions {
  readonly env: NodeJS.ProcessEnv
  /** Folder below which runs are written; it need not exist. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

/** One line of the doctor's answer. A warning lets training go on. */
export interface DrivenCheck {
  readonly name: string
  readonly level: 'ok' | 'warning' | 'problem'
  readonly message: string
}
