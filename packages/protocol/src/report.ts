import { z } from 'zod'
import { Sampling } from './sampling.ts'
import { AgentTokens, TokenLedger } from './token-ledger.ts'
import { TokenReport } from './token-report.ts'

/** Rollouts that failed for one reason: how many, and the first of them. */
export const FailureCount = z.strictObject({
  code: z.string(),
  count: z.int().min(1),
  rollout: z.string(),
  message: z.string(),
  /** File and line of the user's code that threw it; `null` where none did. */
  source: z.string().nullable(),
})
export type FailureCount = z.infer<typeof FailureCount>

/** Mean reward over the tasks of an evaluation, with a 95 % interval, which lies in [0, 1] where all rewards do. */
export const EvaluationResult = z.strictObject({
  name: z.string(),
  step: z.int(),
  tasks: z.int(),
  /** Of all tasks. */
  rollouts: z.int(),
  /** Rollouts without a result, which count as reward 0. */
  failed: z.int(),
  /** Rollouts whose reward abstained, which are in no mean. */
  unscored: z.int().default(0),
  /** Why rollouts failed. */
  failures: z.array(FailureCount).default([]),
  /** Of how many tasks and rollouts the mean and the interval are, where the infrastructure failed others: these count in neither. */
  counted: z.strictObject({ tasks: z.int(), rollouts: z.int() }).optional(),
  reward: z.number(),
  interval: z.tuple([z.number(), z.number()]),
  sampling: Sampling,
  byKind: z.record(z.string(), z.strictObject({ rollouts: z.int(), reward: z.number() })),
})
export type EvaluationResult = z.infer<typeof EvaluationResult>

const callCounts = {
  modelCalls: z.strictObject({ agent: z.int(), gateway: z.int(), engine: z.int() }),
  /**
   * `asked` counts the calls in answers of models, and `agent` those that agents made here: of these, `environment` went to servers,
   * which counted `servers`, and `functions` were answered in the process. Calls that an agent of another framework runs by itself are in `asked` alone.
   */
  toolCalls: z.strictObject({
    asked: z.int(),
    agent: z.int(),
    environment: z.int(),
    functions: z.int(),
    servers: z.int().nullable(),
  }),
}

/** The weights that a report is about. `null` where a report from before it was kept does not say. */
const weights = {
  /** Folder or name of the model: of a training, the one that it began with. */
  model: z.string().nullable().default(null),
  /** Of a training, the checkpoint with its trained weights, below `path`; of an evaluation, the one that was loaded into the model. */
  checkpoint: z.string().nullable().default(null),
}

/** What a training leaves in `report.json`: what the terminal said, for programs. */
export const RunReport = z.strictObject({
  version: z.literal(1),
  kind: z.literal('training').default('training'),
  ...weights,
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
  /** What became of the tokens of each agent. */
  agents: z.record(z.string(), AgentTokens).default({}),
  /** Why rollouts failed, over all processes of the run. */
  failures: z.array(FailureCount).default([]),
  /** Over the calls of all processes of the run. */
  tokenReport: TokenReport.optional(),
  /**
   * Over all processes of the run; a killed process may lack what it counted in its last half second. Calls are counted on both
   * sides of each wire: `agent` counts those of rollouts with a result, `gateway` and `engine` those of superseded attempts too.
   */
  counts: z.strictObject({
    rollouts: z.int(),
    /** Of rollouts with a result: more than these where some began again. Reports from before it was counted lack it. */
    attempts: z.int().optional(),
    /** Attempts that were lost with their workers, and begun again. Reports from before it was counted lack it. */
    losses: z.int().optional(),
    /** Rollouts that were left out because the first samples of their group were all solved; absent without `training.firstSamples`. */
    notStarted: z.int().optional(),
    episodesByStopReason: z.record(z.string(), z.int()),
    ...callCounts,
  }),
  /** Greatest difference between the logprob of a token as it was sampled and as the trainer computed it with the same weights; `null` where it was not measured. */
  maxLogprobDifference: z.number().nullable().default(null),
  /** Over all processes of the run; no time is counted while none of them works. What is in no other phase is in `other`. */
  times: z.strictObject({ wallMs: z.number(), cpuMs: z.number(), phasesMs: z.record(z.string(), z.number()) }),
  checkpoints: z.array(z.string()),
  /** By kind, over all processes of the run: how often, and the first messages. */
  warnings: z.array(z.strictObject({ code: z.string(), count: z.int().min(1), messages: z.array(z.string()).min(1) })).default([]),
  versions: z.record(z.string(), z.string()),
})
export type RunReport = z.infer<typeof RunReport>

/** What an evaluation leaves in `report.json`: one row for each rollout, and the mean reward where there was one. */
export const InferenceReport = z.strictObject({
  version: z.literal(1),
  kind: z.literal('evaluation'),
  ...weights,
  path: z.string(),
  seed: z.int(),
  sampling: Sampling,
  tasks: z.int(),
  /** Rollouts of all tasks. */
  rollouts: z.int(),
  /** Rollouts without a result, which count as reward 0. */
  failed: z.int(),
  /** Rollouts whose reward abstained, which are in no mean. */
  unscored: z.int(),
  failures: z.array(FailureCount),
  counted: EvaluationResult.shape.counted,
  /** Mean over tasks; `null` where no rollout was scored. */
  reward: z.number().nullable(),
  interval: z.tuple([z.number(), z.number()]).nullable(),
  byKind: EvaluationResult.shape.byKind,
  /** Chance that at least one of k samples of a task has reward 1 or more; unbiased estimate. */
  passAtK: z.record(z.string(), z.number()),
  results: z.array(
    z.strictObject({
      taskId: z.string(),
      sample: z.int(),
      answer: z.string().nullable(),
      reward: z.number().nullable(),
      stopReason: z.string(),
    }),
  ),
  counts: z.strictObject(callCounts),
  tokenReport: TokenReport,
  times: z.strictObject({ wallMs: z.number() }),
  versions: z.record(z.string(), z.string()),
})
export type InferenceReport = z.infer<typeof InferenceReport>

/** What a run leaves in `report.json`. */
export const AnyReport = z.union([RunReport, InferenceReport])
export type AnyReport = z.infer<typeof AnyReport>
