import type { RowSelection } from '../protocol/channel.ts'
import type { ErrorCode, TrainError } from '../protocol/errors.ts'
import type { AnswerKey, TrainingTask } from '../protocol/task.ts'
import type { TrainerFacts } from './trainer-facts.ts'
import type { TrainerPython } from './trainer-python.ts'

/**
 * A framework of Python that trains and submits rollouts over the channel, with only what is specific to it. `trainers/src/shared` has what
 * all of them share: finding and making a Python, the guarded process, checks, steps, ledger, report. `Settings` are ours. `Config` and `Plan` may hold more than their users here know.
 */
export interface PythonTrainer<
  Settings = unknown,
  Config extends TrainerConfig<Settings> = TrainerConfig<Settings>,
  Plan extends TrainerPlan = TrainerPlan,
> {
  /** Name in `trainEngineName`, in commands and for people. */
  readonly name: string
  readonly python: TrainerPython
  /** Names of its keys, for messages. */
  readonly keys: TrainerKeys
  /** Selections of a rollout's rows that its batches can hold. The row of one agent is one that each of them holds. */
  readonly rows: readonly Extract<RowSelection, string>[]
  /** Reads a configuration in the framework's form, in ours, or both. `problems` has everything that is wrong with it. */
  readConfig(source: string | object | undefined, options: ReadConfigOptions): Promise<Config>
  /** Plans a start, with every value filled in. `problems` has everything that prevents it. Starts and writes nothing. */
  plan(config: Config, run: PlanInputs, options?: PlanOptions): Promise<Plan>
  /** Sentences about what this machine lacks for a plan. Without this check a framework may wait for GPUs for ever. */
  lacks(plan: Plan, options: MachineOptions & { readonly python: string }): Promise<readonly string[]>
  /** Writes files to the run directory that a person can read and run by hand; resolves to their names. */
  writeFiles(plan: Plan, data: TrainerData): Promise<readonly string[]>
  /** The program of one start, and all variables of its processes. */
  command(plan: Plan, start: TrainerStart): TrainerCommand
  readonly output: TrainerOutput
  readonly checkpoints: TrainerCheckpoints
  /** Checks for `doctor` that the machine and its Python have what this framework needs or, with a plan, what the plan needs. */
  checks(options: MachineOptions & { readonly plan: Plan | null; readonly python: string | null }): AsyncIterable<MachineCheck>
  /** The configuration to train a tiny model on the processor; `model` is its folder. */
  smokeConfig(model: string): object
  /** Facts for the page of trainers, docs/4.reference/trainers.md. */
  readonly facts?: TrainerFacts | undefined
}

/** Names of keys, as a user writes them. */
export interface TrainerKeys {
  readonly model: string
  readonly trainFiles: string
  readonly reward: string
  /** Key of a reward of the framework itself; `null` if it cannot score. */
  readonly nativeReward: string | null
  /** Keys of the longest prompt and the longest response, in tokens. */
  readonly promptLength: string
  readonly responseLength: string
  /** Key that leaves longer prompts out; `null` if there is none. */
  readonly filterPrompts: string | null
}

export interface ReadConfigOptions {
  /** Base folder for relative paths of a configuration that is not a file. */
  readonly baseDirectory: string
  /** Variables that a configuration may refer to. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Keys at the top of a configuration that belong to one trainer each, by its name. Those of other trainers are not read. */
  readonly sections?: readonly string[] | undefined
  /** Values of the caller that replace those of the configuration. */
  readonly overrides?: { readonly steps?: number | undefined; readonly seed?: number | undefined; readonly model?: string | undefined }
  /** Finds the interpreter that has the framework; `named` is the configuration's. Resolves to `null` if there is none. */
  readonly findPython?: (named: string | null) => Promise<string | null>
  readonly signal?: AbortSignal | undefined
}

/** A configuration as it was read. */
export interface TrainerConfig<Settings = unknown> {
  /** Folder that its relative paths are resolved from. */
  readonly directory: string
  /** Our side of the run. */
  readonly settings: Settings
  /** Version of the framework that has read it; `null` if none is installed, and then its keys are unchecked. */
  readonly version: string | null
  /** The things that it names, as they are written there. */
  readonly names: {
    readonly trainFiles: readonly string[]
    readonly testFiles: readonly string[]
    readonly promptKey: string
    /** The file of the reward, and the function in it. */
    readonly reward: { readonly path: string | null; readonly name: string | null }
    /** A folder or a name on the Hugging Face Hub. */
    readonly model: string | null
  }
  /** Whether the model's own chat template is used and must be checked. */
  readonly usesModelTemplate: boolean
  /** Longest prompt in tokens, and whether the framework leaves longer ones out; `null` if that is not known. */
  readonly longestPrompt: { readonly tokens: number; readonly leftOut: boolean } | null
  /** A value that is equal for two configurations of the same training. */
  readonly identity: unknown
  /** Sentences for the user. */
  readonly notes: readonly string[]
  /** Whole sentences; empty when the configuration can be used. */
  readonly problems: readonly string[]
  /** Sections of ours with a problem. Values that seem to be missing there are no further problems. */
  readonly failed?: readonly string[] | undefined
}

/** The results of a run's checks for the parts around the configuration. */
export interface PlanInputs {
  /** Absolute path of the run directory. */
  readonly path: string
  readonly name: string
  readonly agent: {
    readonly name: string
    /** `./file.ts#export`, relative to `directory` or absolute; `null` for a live object. */
    readonly module: string | null
    readonly directory: string
    /** Text of the user's agent.yaml, if there is one. */
    readonly source: string | null
  }
  /** The model that the training begins with; it replaces the configuration's. */
  readonly model?: string
  /** Files that the framework reads; `null` keeps those of the configuration. Counts are rows. */
  readonly train: { readonly path: string; readonly rows: number } | null
  readonly test: { readonly path: string; readonly rows: number } | null
  /** A reward from a file, such as `{ path: '/…/reward.ts', name: 'gaiaRewardFunc' }`; `null` for a function, or without a reward. */
  readonly reward: { readonly path: string; readonly name: string | null } | null
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
  /** Unique id of this start. */
  readonly incarnation?: string
  /** Longest conversation of the model in tokens, if its config.json is known. */
  readonly contextLength?: number | null
  /** The interpreter that has the framework. */
  readonly python?: string
  /** Set when a run is resumed. */
  readonly resume?: boolean
}

export interface PlanOptions {
  /** Has the framework itself check its start, even if that takes the time of its imports. No plan follows. */
  readonly validate?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** All data for a start of the framework. */
export interface TrainerPlan {
  /** Version of the framework. */
  readonly version: string
  /** Number of training steps; `null` if the number of rows is not known. */
  readonly steps: number | null
  /** Absolute path of the folder of its checkpoints. */
  readonly checkpoints: string
  /** Longest prompt and response of a row, in tokens. */
  readonly limits: { readonly maxPromptTokens: number; readonly maxResponseTokens: number }
  /** Its sampling in evaluations: rollouts of each task; `topK` is 0 for all tokens. */
  readonly evaluation: { readonly samples: number; readonly temperature: number; readonly topP: number; readonly topK: number }
  /** Largest difference of logprobs between sampler and trainer with equal weights; `null` if they compute differently. */
  readonly logprobTolerance: number | null
  readonly notes: readonly string[]
  /** Sentences about traps that do not prevent training. */
  readonly warnings: readonly string[]
  readonly problems: readonly string[]
}

/** A loaded dataset. */
export interface TrainerDataset {
  readonly tasks: readonly TrainingTask[]
  /** By task id. */
  readonly answers: ReadonlyMap<string, AnswerKey>
}

export interface TrainerData {
  readonly train: TrainerDataset | null
  readonly test: TrainerDataset | null
}

/** One start of the framework in a run. */
export interface TrainerStart {
  readonly python: string
  /** Values of the bridge's variables. */
  readonly bridge: BridgeVariables
  /** Variables of this process. Those that the framework reads are passed on. */
  readonly inherited: Readonly<Record<string, string | undefined>>
}

/** Values of the bridge's variables, by which a process of the framework finds this one. */
export interface BridgeVariables {
  readonly run: string
  /** Unique id of this start. Every process of it carries the id in its environment. */
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

export interface TrainerCommand {
  /** Program and arguments. */
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Folders to make before the start, accessible to their owner alone. */
  readonly folders: readonly string[]
  /** A folder to remove afterwards; `null` for none. */
  readonly temporary: string | null
}

/** One line of the metrics. A number that is not finite is `null`. */
export interface MetricsLine {
  readonly step: number
  readonly data: Readonly<Record<string, unknown>>
}

/** The content of one line of metrics; it has both parts if an evaluation follows a step. */
export interface MetricsReading {
  /** The metrics of a step under our names and the framework's, milliseconds by phase, and whether the step has a checkpoint. */
  readonly step: {
    readonly metrics: Readonly<Record<string, number>>
    readonly phasesMs: Readonly<Record<string, number>>
    readonly saved: boolean
  } | null
  readonly evaluation: Readonly<Record<string, number>> | null
}

/** Readers of a framework's console and metrics. */
export interface TrainerOutput {
  /** Lines before its first rollout, in order. */
  readonly milestones: readonly RegExp[]
  /** Reads the finite numbers of a line. */
  readMetrics(numbers: Readonly<Record<string, number>>): MetricsReading
  /** A reader of one start. */
  createConsoleReader(): ConsoleReader
}

export interface TrainerFailure {
  readonly code: ErrorCode
  /** The failure and the remedy. */
  readonly message: string
  /** The line of the console that shows the failure. */
  readonly line: string
}

/** Reads lines of a console that may tell why a framework ended or never begins. */
export interface ConsoleReader {
  /** One line without colours. */
  read(line: string): void
  /** The failure that the most telling line names; `null` if there is no such line. */
  failure(): TrainerFailure | null
  /** Asked while the framework runs. Returns the error of one that cannot begin any more although it keeps trying. */
  stuck?(): TrainError | null
}

/** The checkpoints of a framework in the folder of a plan. */
export interface TrainerCheckpoints {
  /** The step that a start resumes from; 0 for none. */
  resumable(folder: string): number
  /** Steps with a checkpoint, ascending. */
  steps(folder: string): readonly number[]
  /** Path of a step's checkpoint, relative to the run. */
  pathOf(step: number): string
  /** Writes a checkpoint as a Hugging Face folder, which appears whole or not at all. Rejects with CHECKPOINT_CORRUPT if there is none. */
  exportModel(options: ExportModelOptions): Promise<ExportedModel>
}

export interface ExportModelOptions {
  readonly python: string
  /** Folder of the checkpoints. */
  readonly checkpoints: string
  /** Default: the newest. */
  readonly step?: number | undefined
  /** Folder to write, which must be absent or empty. */
  readonly target: string
  /** Folder that the training began with. Its tokenizer and template are copied unchanged. */
  readonly model?: string | undefined
  /** `keep` leaves the trained type. Default `keep`. */
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
  /** Folder that runs are written below. It need not exist. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

/** One line of the doctor's answer. A warning does not prevent training. */
export interface MachineCheck {
  readonly name: string
  readonly level: 'ok' | 'warning' | 'problem'
  readonly message: string
}
