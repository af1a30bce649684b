import type { ErrorRecord, ToolCallRecord, Trajectory } from '../protocol/episode.ts'
import type { EvaluationComparison, EvaluationReport } from '../protocol/evaluation-report.ts'
import type { Message } from '../protocol/message.ts'
import type { FailureCount } from '../protocol/report-parts.ts'
import type { RunEvent } from '../protocol/run-event.ts'
import type { RunManifest } from '../protocol/run-manifest.ts'
import type { AgentTokens, LedgerSummary, UntrainedReason } from '../protocol/token-ledger.ts'
import type { WeightVersionSpan } from '../protocol/tokens.ts'
import type { FinishReason } from '../protocol/turn.ts'
import type { AttemptRow, RolloutQuery, RolloutRow, RolloutWaits, RunHealth, RunRolloutStatus, StepSample } from './run-records.ts'

/**
 * A run as a dashboard reads it. Answers are plain JSON, equal from a folder, over HTTP and from the data in an exported file. Every method
 * rejects with the error of the run: STORE_CORRUPT, STORE_VERSION, STORE_FAILED.
 */
export interface RunClient {
  summary(): Promise<RunSummary>
  /** Rollouts in the order of their queueing or, with `finishedAfter`, of their finishing. */
  rollouts(query: RolloutQuery): Promise<RolloutList>
  /** Every token of a rollout; `null` if there is none of this key, or an export does not carry it. */
  rollout(key: string): Promise<RolloutTrace | null>
  /** A run that is an evaluation, as far as it is; `null` for any other. */
  evaluation(): Promise<EvaluationView | null>
  /** Health of the process after the Unix millisecond `after`. About half an hour is kept, one sample every two seconds. */
  health(after: number): Promise<RunHealth>
  /** Events of the run after byte `after` of its log, and future ones, until `signal` aborts or the run has ended. */
  follow(after: number, signal: AbortSignal): AsyncIterable<RunUpdate>
}

/** `interrupted`: the run has not ended, and no process works on it. */
export type RunStatus = 'running' | 'finished' | 'stopped' | 'failed' | 'interrupted'

/** A run as a row in a list of runs. */
export interface RunListing {
  /** Its name in the dashboard's addresses. */
  readonly id: string
  readonly name: string
  readonly path: string
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly status: RunStatus
  /** An evaluation has no steps, and only `after`. */
  readonly kind: RunManifest['kind']
  /** The reason why the run cannot be read; everything below is empty then. */
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
  /** Step of the evaluation, 0 before training. */
  readonly step: number
  readonly tasks: number
  readonly byKind: Readonly<Record<string, RewardMeasure>>
  /** Unbiased estimate of the chance that one of k samples of a task is right, by k. */
  readonly passAtK: Readonly<Record<string, number>>
}

/** The numbers of an evaluation that follow from its rollouts. */
export type EvaluationNumbers = Pick<
  EvaluationReport,
  | 'answeredAs'
  | 'tasks'
  | 'rollouts'
  | 'failed'
  | 'notStarted'
  | 'unscored'
  | 'failures'
  | 'scored'
  | 'reward'
  | 'interval'
  | 'bounds'
  | 'passAtK'
  | 'majority'
  | 'mostFrequentAnswer'
  | 'byKind'
  | 'cost'
  | 'rewardCost'
  | 'usage'
  | 'perRollout'
  | 'unseen'
>

/** `failed`: the rollout says nothing about its agent. `unscored`: its reward abstained. `waiting`: it has not begun, or has to begin again. */
export type CellOutcome = 'right' | 'partly' | 'wrong' | 'failed' | 'unscored' | 'running' | 'waiting'

/** A rollout of an evaluation. */
export interface EvaluationCell {
  /** Key of the rollout, also of one that has not begun. */
  readonly rollout: string
  readonly sample: number
  readonly outcome: CellOutcome
  readonly reward: number | null
  /** Code of its error, else its stop reason; `null` until it has ended. */
  readonly reason: string | null
  /** Names of the tools that it called. */
  readonly tools: readonly string[]
}

/** A task of an evaluation with its rollouts, in the order of their samples. */
export interface EvaluationTask extends TaskSummary {
  readonly id: string
  /** Equal tasks of two evaluations have equal hashes. */
  readonly hash: string
  readonly kind: string
  /** Mean reward of the rollouts that have one; `null` if none has. */
  readonly mean: number | null
  readonly cells: readonly EvaluationCell[]
}

/** An evaluation, live or ended. */
export interface EvaluationView {
  /** Those of its report. While it runs, rollouts that have not ended count as not started. */
  readonly numbers: EvaluationNumbers
  /** In the order of the dataset. */
  readonly tasks: readonly EvaluationTask[]
  /** The evaluation that its report is compared with; `null` if there is none. */
  readonly comparison: EvaluationComparison | null
  /** Milliseconds; `null` until it has ended. */
  readonly wallMs: number | null
}

/** A training step, counted from its rollouts; `metrics` are the trainer's. */
export interface StepSummary extends RewardMeasure {
  readonly step: number
  /** `null` until the step is trained, as is `weightVersion`. */
  readonly metrics: Readonly<Record<string, number>> | null
  readonly weightVersion: number | null
  /** Path inside the run; `null` for a step without checkpoint. */
  readonly checkpoint: string | null
  /** Number of groups whose rewards are all 1 or more, differ, or are all less than 1. */
  readonly groups: { readonly right: number; readonly mixed: number; readonly wrong: number }
  /** Means over the rollouts of the step. */
  readonly turns: number
  readonly toolCalls: number
  readonly tokens: number
  /** Sums over the rollouts of the step, in milliseconds. */
  readonly waitMs: RolloutWaits
  /** Sampled tokens of the step that were trained, and the others by reason. */
  readonly trainedTokens: number
  readonly untrainedTokens: Readonly<Partial<Record<UntrainedReason, number>>>
  /** Greatest attempt number of a rollout, counted from 0. */
  readonly attempts: number
}

export interface RunSummary {
  readonly kind: RunManifest['kind']
  readonly name: string
  readonly path: string
  readonly createdAt: number
  readonly status: RunStatus
  /** The reason why a failed run ended, if it is recorded, with the remedy. */
  readonly failure: { readonly code: string; readonly message: string; readonly remedy: string | null } | null
  readonly seed: number | null
  readonly versions: Readonly<Record<string, string>>
  /** Facts that the run recorded at its start: policy, engine, agent. */
  readonly details: Readonly<Record<string, unknown>>
  /** Page that shows the desktop of the rollout in `rollout=`; `null` if rollouts have none. */
  readonly desktopUrl: string | null
  /** The configuration of the trainer, as the run keeps it. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly rollouts: Readonly<Record<RunRolloutStatus, number>>
  readonly stopReasons: Readonly<Record<string, number>>
  /** Errors of rollouts by their code and the line of the user's code that threw, each with its count and the first rollout that has it. */
  readonly errors: readonly FailureCount[]
  readonly turns: number
  readonly toolCalls: number
  readonly cost: number
  readonly steps: readonly StepSummary[]
  readonly evaluations: readonly EvaluationSummary[]
  /** Counted from the rollouts and from the samples of the trained steps. */
  readonly ledger: LedgerSummary
  /** Account of the tokens of each agent: of the trained steps while the run is under way, of all once it has ended. */
  readonly agents: Readonly<Record<string, AgentTokens>>
  /** The policy that each agent asks for, if there are several. */
  readonly policyOfAgent: Readonly<Record<string, string>>
  /** Tool calls in sampled text that did not parse, by kind, and the rollouts that are known to have some. */
  readonly unparsed: { readonly byKind: Readonly<Record<string, number>>; readonly rollouts: readonly string[] }
  /** Rollouts that ended in a later attempt than their first: their number, and the first twenty. */
  readonly repeated: { readonly count: number; readonly first: readonly RolloutRow[] }
  /** The first hundred rollouts that did not complete, and some of those without a result. */
  readonly incomplete: readonly RolloutRow[]
  /** Milliseconds; `null` until the run has ended. */
  readonly times: { readonly wallMs: number; readonly cpuMs: number; readonly phasesMs: Readonly<Record<string, number>> } | null
  readonly checkpoints: readonly string[]
  readonly warnings: readonly { readonly code: string; readonly count: number; readonly message: string }[]
  /** Interval of the health samples, and how long they are kept, in milliseconds. */
  readonly health: { readonly everyMs: number; readonly keptMs: number }
  /** Position at which `follow` continues. */
  readonly eventsEnd: number
}

/** The shown part of a task: its question, and the answer that its reward expects. */
export interface TaskSummary {
  readonly question: string
  /** `null` if the run does not keep it. */
  readonly answer: string | null
}

/** A row of a step without the logprobs of its tokens. */
export type SampleSummary = Omit<StepSample, 'trainerLogprobs'>

export interface RolloutList {
  readonly rows: readonly RolloutRow[]
  /** The tasks of these rollouts, by id. */
  readonly tasks: Readonly<Record<string, TaskSummary>>
  /** Training records of these rollouts. */
  readonly samples: readonly SampleSummary[]
  /** `after` of the next page; `null` on the last one. */
  readonly next: string | null
}

/** Author of a prompt token; `template` is text between messages. */
export type PromptOrigin = 'template' | 'system' | 'user' | 'assistant' | 'tool'

export interface TurnTrace {
  readonly index: number
  readonly parent: number | null
  /** Reasons why it is a root or a branch; empty for a continuation. */
  readonly branchReasons: readonly string[]
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  readonly finishReason: FinishReason
  readonly weightVersions: readonly WeightVersionSpan[]
  readonly cachedTokens: number
  readonly messagesDelta: readonly Message[]
  readonly message: Message
  /** Model that answered, if it is not the policy. */
  readonly model: string | null
  readonly cost: number | null
  /** Prompt tokens after those of the parent. */
  readonly promptIds: readonly number[]
  /** The origin of each of them. */
  readonly promptOrigins: readonly PromptOrigin[]
  readonly completionIds: readonly number[]
  /** One logprob for each sampled token. */
  readonly logprobs: readonly number[]
  /** One for each sampled token, if the trainer computed them. */
  readonly trainerLogprobs: readonly number[] | null
  readonly isTrained: boolean
  readonly advantage: number | null
  readonly reason: UntrainedReason | null
  /** Kinds of its tool calls that did not parse. */
  readonly unparsed: readonly string[]
}

/** The turns of one invocation. */
export interface InvocationTrace extends Pick<Trajectory, 'id' | 'agent' | 'policy' | 'trainable' | 'startedBy' | 'timing'> {
  /** Number of invocations above it, of which each asked for the next one. */
  readonly depth: number
  readonly turns: readonly TurnTrace[]
}

export interface RolloutTrace {
  readonly row: RolloutRow
  /** Attempts in their order. The last one is that of `row`. */
  readonly attempts: readonly AttemptRow[]
  readonly task: TaskSummary | null
  /** Below each one those that it asked for. */
  readonly invocations: readonly InvocationTrace[]
  readonly toolCalls: readonly ToolCallRecord[]
  readonly scores: Readonly<Record<string, number>>
  readonly error: ErrorRecord | null
  /** Remedy for the error, for people. */
  readonly remedy: string | null
  /** Text of every token id of the rollout, by policy. An id that is not in the policy's tokenizer has none. */
  readonly vocabularies: Readonly<Record<string, Readonly<Record<number, string>>>>
}

export interface RunUpdate {
  /** Byte offset after the event in the run's log. */
  readonly id: number
  readonly event: RunEvent
}
