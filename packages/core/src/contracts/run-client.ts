import type {
  AgentEdge,
  AgentTokens,
  ErrorRecord,
  FailureCount,
  FinishReason,
  Message,
  RunEvent,
  RunManifest,
  TokenLedger,
  ToolCallRecord,
  UntrainedReason,
  WeightVersionSpan,
} from '@aworld-train/protocol'
import type { AttemptRow, RolloutQuery, RolloutRow, RolloutWaits, RunHealth, RunRolloutStatus, StepSample } from './run-records.ts'

/**
 * A run as a dashboard reads it. Answers are plain JSON, and the same from a folder, over HTTP and from the data in an exported file.
 * Every method rejects with the error of the run: STORE_CORRUPT, STORE_VERSION, STORE_FAILED.
 */
export interface RunClient {
  summary(): Promise<RunSummary>
  /** Rollouts in the order in which they were queued, or in that of finishing where `finishedAfter` is set. */
  rollouts(query: RolloutQuery): Promise<RolloutList>
  /** Every token of a rollout; `null` where there is none of this key, or an export does not carry it. */
  rollout(key: string): Promise<RolloutTrace | null>
  /** How the process was doing after the Unix millisecond `after`: about half an hour is kept, a sample every two seconds. */
  health(after: number): Promise<RunHealth>
  /** Events of the run behind byte `after` of its log, then those to come, until `signal` aborts or the run has ended. */
  follow(after: number, signal: AbortSignal): AsyncIterable<RunUpdate>
}

/** `interrupted`: it has not ended, and no process works on it. */
export type RunStatus = 'running' | 'finished' | 'stopped' | 'failed' | 'interrupted'

/** A run as a list of runs shows it. */
export interface RunListing {
  /** What the dashboard's addresses call it. */
  readonly id: string
  readonly name: string
  readonly path: string
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly status: RunStatus
  /** An evaluation has no steps, and `after` alone. */
  readonly kind: RunManifest['kind']
  /** What keeps the run from being read; everything below is empty then. */
  readonly problem: string | null
  readonly steps: number
  /** Mean training reward of each step. */
  readonly rewards: readonly number[]
  readonly rollouts: number
  readonly before: number | null
  readonly after: number | null
}

/** A mean over rollouts with its 95 % interval. */
export interface RewardMeasure {
  readonly rollouts: number
  readonly reward: number
  readonly interval: readonly [number, number]
}

export interface EvaluationSummary extends RewardMeasure {
  readonly name: string
  readonly split: string
  /** The step at which it was made, 0 before training. */
  readonly step: number
  readonly tasks: number
  readonly byKind: Readonly<Record<string, RewardMeasure>>
  /** Chance that one of k samples of a task is right, by k; unbiased estimate. */
  readonly passAtK: Readonly<Record<string, number>>
}

/** A training step, counted from its rollouts; `metrics` are what the trainer said. */
export interface StepSummary extends RewardMeasure {
  readonly step: number
  /** `null` while the step is not trained yet; the same holds of `weightVersion`. */
  readonly metrics: Readonly<Record<string, number>> | null
  readonly weightVersion: number | null
  /** Path inside the run, `null` for a step without checkpoint. */
  readonly checkpoint: string | null
  /** Groups whose rewards are all 1 or more, differ, or are all less than 1. */
  readonly groups: { readonly right: number; readonly mixed: number; readonly wrong: number }
  /** Means over the rollouts of the step. */
  readonly turns: number
  readonly toolCalls: number
  readonly tokens: number
  /** Sums over the rollouts of the step, in milliseconds. */
  readonly waitMs: RolloutWaits
  /** Sampled tokens of the step that were trained, and those that were not by the reason. */
  readonly trainedTokens: number
  readonly untrainedTokens: Readonly<Partial<Record<UntrainedReason, number>>>
  /** Greatest attempt number of a rollout, from 0. */
  readonly attempts: number
}

/** What became of every sampled token, counted from the rollouts and from the samples of the trained steps. */
export type LedgerSummary = Omit<TokenLedger, 'version' | 'withVariance'>

export interface RunSummary {
  readonly kind: RunManifest['kind']
  readonly name: string
  readonly path: string
  readonly createdAt: number
  readonly status: RunStatus
  /** Why a failed run ended, where it says so, with what a person does about it. */
  readonly failure: { readonly code: string; readonly message: string; readonly remedy: string | null } | null
  readonly seed: number | null
  readonly versions: Readonly<Record<string, string>>
  /** What the run said of itself as it began: policy, engine, agent. */
  readonly details: Readonly<Record<string, unknown>>
  /** The configuration of the trainer as the run keeps it. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly rollouts: Readonly<Record<RunRolloutStatus, number>>
  readonly stopReasons: Readonly<Record<string, number>>
  /** Errors of rollouts by their code and the line of the user's code that threw: how many, and the first rollout that has it. */
  readonly errors: readonly FailureCount[]
  readonly turns: number
  readonly toolCalls: number
  readonly cost: number
  readonly steps: readonly StepSummary[]
  readonly evaluations: readonly EvaluationSummary[]
  readonly ledger: LedgerSummary
  /** What became of the tokens of each agent: of the trained steps while the run goes on, of all once it has ended. */
  readonly agents: Readonly<Record<string, AgentTokens>>
  /** Tool calls in sampled text that did not parse, by kind, and the rollouts that are known to have some. */
  readonly unparsed: { readonly byKind: Readonly<Record<string, number>>; readonly rollouts: readonly string[] }
  /** Rollouts that ended in another attempt than their first: how many, and the first twenty. */
  readonly repeated: { readonly count: number; readonly first: readonly RolloutRow[] }
  /** Rollouts that did not complete, the first hundred, and some of those without a result. */
  readonly incomplete: readonly RolloutRow[]
  /** Milliseconds; `null` until the run has ended. */
  readonly times: { readonly wallMs: number; readonly cpuMs: number; readonly phasesMs: Readonly<Record<string, number>> } | null
  readonly checkpoints: readonly string[]
  readonly warnings: readonly { readonly code: string; readonly count: number; readonly message: string }[]
  /** How often the process says how it is doing, and for how long that is kept, in milliseconds. */
  readonly health: { readonly everyMs: number; readonly keptMs: number }
  /** Where `follow` goes on. */
  readonly eventsEnd: number
}

/** What is shown of a task: its question, and the answer that its reward expects. */
export interface TaskSummary {
  readonly question: string
  /** `null` where the run does not keep it. */
  readonly answer: string | null
}

/** A row of a step without the logprobs of its tokens. */
export type SampleSummary = Omit<StepSample, 'trainerLogprobs'>

export interface RolloutList {
  readonly rows: readonly RolloutRow[]
  /** By id, of the tasks of these rollouts. */
  readonly tasks: Readonly<Record<string, TaskSummary>>
  /** What became of these rollouts in training. */
  readonly samples: readonly SampleSummary[]
  /** `after` of the next page; `null` on the last one. */
  readonly next: string | null
}

/** Who wrote a token of a prompt; `template` is what lies between messages. */
export type PromptOrigin = 'template' | 'system' | 'user' | 'assistant' | 'tool'

export interface TurnTrace {
  readonly index: number
  readonly parent: number | null
  /** Why it is a root or a branch; empty for a continuation. */
  readonly branchReasons: readonly string[]
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  readonly finishReason: FinishReason
  readonly weightVersions: readonly WeightVersionSpan[]
  readonly cachedTokens: number
  readonly messagesDelta: readonly Message[]
  readonly message: Message
  /** Model that answered, where it is not the policy. */
  readonly model: string | null
  readonly cost: number | null
  /** Prompt tokens behind those of the parent. */
  readonly promptIds: readonly number[]
  /** Of each of them its origin. */
  readonly promptOrigins: readonly PromptOrigin[]
  readonly completionIds: readonly number[]
  /** Of each sampled token. */
  readonly logprobs: readonly number[]
  /** Of each sampled token, where the trainer computed them. */
  readonly trainerLogprobs: readonly number[] | null
  readonly isTrained: boolean
  readonly advantage: number | null
  readonly reason: UntrainedReason | null
  /** Kinds of tool calls in it that did not parse. */
  readonly unparsed: readonly string[]
}

/** The turns of one agent. */
export interface AgentTrace {
  readonly agent: string
  readonly policy: string
  readonly trainable: boolean
  readonly turns: readonly TurnTrace[]
}

export interface RolloutTrace {
  readonly row: RolloutRow
  /** In their order; the last one is that of `row`. */
  readonly attempts: readonly AttemptRow[]
  readonly task: TaskSummary | null
  readonly agents: readonly AgentTrace[]
  readonly edges: readonly AgentEdge[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly scores: Readonly<Record<string, number>>
  readonly error: ErrorRecord | null
  /** What a person does about the error. */
  readonly remedy: string | null
  /** Text of every token id of the rollout; an id without one is not in the run's tokenizer. */
  readonly vocabulary: Readonly<Record<number, string>>
}

export interface RunUpdate {
  /** Byte offset behind the event in the run's log. */
  readonly id: number
  readonly event: RunEvent
}
