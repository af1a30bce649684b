import { z } from 'zod'
import { EvaluationReport } from './evaluation-report.ts'
import { callCounts, FailureCount, weights } from './report-parts.ts'
import { Sampling } from './sampling.ts'
import { AgentTokens, LedgerSummary, TokenLedger } from './token-ledger.ts'
import { TokenReport } from './token-report.ts'

/** Mean reward over the tasks of an evaluation, with a 95 % interval, which is in [0, 1] if all rewards are. */
export const EvaluationResult = z.strictObject({
  name: z.string(),
  step: z.int(),
  tasks: z.int(),
  /** Rollouts of all tasks. */
  rollouts: z.int(),
  /** Rollouts without a result. They count as reward 0. */
  failed: z.int(),
  /** Rollouts whose reward abstained. They are in no mean. */
  unscored: z.int().default(0),
  /** Reasons why rollouts failed. */
  failures: z.array(FailureCount).default([]),
  /** Number of tasks and rollouts in the mean and the interval, if the infrastructure failed others. Those count in neither. */
  counted: z.strictObject({ tasks: z.int(), rollouts: z.int() }).optional(),
  reward: z.number(),
  interval: z.tuple([z.number(), z.number()]),
  sampling: Sampling,
  byKind: z.record(z.string(), z.strictObject({ rollouts: z.int(), reward: z.number() })),
})
export type EvaluationResult = z.infer<typeof EvaluationResult>

/** The `report.json` of a training: the content of the terminal's report, for programs. */
export const RunReport = z.strictObject({
  version: z.literal(1),
  kind: z.literal('training').default('training'),
  ...weights,
  /** The policies by name, if there are several; `model` is `null` then, and the checkpoint has a folder for each that is trained. */
  policies: z
    .record(
      z.string(),
      z.strictObject({ model: z.string(), trainable: z.boolean(), checkpoint: z.string().nullable(), ledger: LedgerSummary }),
    )
    .optional(),
  run: z.string(),
  path: z.string(),
  status: z.enum(['finished', 'stopped', 'failed']),
  seed: z.int(),
  engine: z.string(),
  tier: z.record(z.string(), z.unknown()),
  before: EvaluationResult.nullable(),
  after: EvaluationResult.nullable(),
  greedyBefore: EvaluationResult.nullable(),
  greedyAfter: EvaluationResult.nullable(),
  curve: z.array(z.strictObject({ step: z.int(), reward: z.number(), metrics: z.record(z.string(), z.number()) })),
  ledger: TokenLedger.nullable(),
  /** Account of the tokens of each agent. */
  agents: z.record(z.string(), AgentTokens).default({}),
  /** Reasons why rollouts failed, over all processes of the run. */
  failures: z.array(FailureCount).default([]),
  /** Covers the calls of all processes of the run. */
  tokenReport: TokenReport.optional(),
  /**
   * Counts over all processes of the run. A killed process may lack its counts of the last half second. Calls are counted on both sides of
   * each wire: `agent` counts those of rollouts with a result, `gateway` and `engine` also those of superseded attempts.
   */
  counts: z.strictObject({
    rollouts: z.int(),
    /** Attempts of rollouts with a result; more than these if some began again. Older reports lack it. */
    attempts: z.int().optional(),
    /** Attempts that were lost with their workers and begun again. Older reports lack it. */
    losses: z.int().optional(),
    /** Rollouts that were left out because the first samples of their group were all solved. Absent without `training.firstSamples`. */
    notStarted: z.int().optional(),
    episodesByStopReason: z.record(z.string(), z.int()),
    ...callCounts,
  }),
  /**
   * Greatest difference between a token's logprob when it was sampled and in the trainer with the same weights; `null` if it was not
   * measured.
   */
  maxLogprobDifference: z.number().nullable().default(null),
  /** Times over all processes of the run, without the time between processes. `other` is the time outside all other phases. */
  times: z.strictObject({ wallMs: z.number(), cpuMs: z.number(), phasesMs: z.record(z.string(), z.number()) }),
  checkpoints: z.array(z.string()),
  /** Warnings by kind, over all processes of the run, each with its count and the first messages. */
  warnings: z.array(z.strictObject({ code: z.string(), count: z.int().min(1), messages: z.array(z.string()).min(1) })).default([]),
  versions: z.record(z.string(), z.string()),
})
export type RunReport = z.infer<typeof RunReport>

/** The `report.json` of any run. */
export const AnyReport = z.union([RunReport, EvaluationReport])
export type AnyReport = z.infer<typeof AnyReport>
