import { z } from 'zod'
import { callCounts, FailureCount, weights } from './report-parts.ts'
import { Sampling } from './sampling.ts'
import { TokenReport } from './token-report.ts'
import { Usage } from './turn.ts'

/** A 95 % interval. */
const Interval = z.tuple([z.number(), z.number()])

/** A mean over tasks with its 95 % interval. */
export const TaskMean = z.strictObject({ value: z.number(), interval: Interval, tasks: z.int() })
export type TaskMean = z.infer<typeof TaskMean>

/** Two evaluations of the same tasks, task by task. */
export const EvaluationComparison = z.strictObject({
  /** The evaluation that this one is compared with: its path, its model, and when it began in Unix milliseconds. */
  path: z.string(),
  model: z.string().nullable(),
  startedAt: z.number(),
  /** Mean reward of this evaluation less that of the other, over the tasks that both have scored. */
  difference: TaskMean,
  better: z.int(),
  worse: z.int(),
  equal: z.int(),
  /** The task whose mean fell most, and from what to what; `null` if none fell. */
  worst: z.strictObject({ taskId: z.string(), from: z.number(), to: z.number() }).nullable(),
  /** Sentences about what else differs, such as the reward. */
  notes: z.array(z.string()),
})
export type EvaluationComparison = z.infer<typeof EvaluationComparison>

/** The `report.json` of an evaluation. Its rollouts are the lines of `results.jsonl` beside it. */
export const EvaluationReport = z.strictObject({
  version: z.literal(2),
  kind: z.literal('evaluation'),
  /** The model by its path or address. */
  ...weights,
  /** The policies by name, if there are several; `model` is `null` then. */
  policies: z.record(z.string(), z.strictObject({ model: z.string(), checkpoint: z.string().nullable() })).optional(),
  run: z.string(),
  path: z.string(),
  agent: z.string(),
  /** Unix milliseconds. */
  startedAt: z.number(),
  /** `stopped`: rollouts were left out because the budget was spent. */
  status: z.enum(['finished', 'stopped']),
  /** Names under which the model answered, most frequent first; empty if no server named one. */
  answeredAs: z.array(z.string()),
  seed: z.int(),
  sampling: Sampling,
  samplesPerTask: z.int(),
  tasks: z.int(),
  /** Rollouts of all tasks. */
  rollouts: z.int(),
  /** Rollouts that say nothing about the agent. They are in no mean. */
  failed: z.int(),
  /** Rollouts that were not started. */
  notStarted: z.int(),
  /** Rollouts whose reward abstained. They are in no mean. */
  unscored: z.int(),
  failures: z.array(FailureCount),
  /** Tasks and rollouts in the mean. */
  scored: z.strictObject({ tasks: z.int(), rollouts: z.int() }),
  /** Mean over tasks; `null` if no rollout was scored. */
  reward: z.number().nullable(),
  interval: Interval.nullable(),
  /** The mean if every rollout that failed or was not started had the least reward, and if it had the greatest; `null` if none did. */
  bounds: Interval.nullable(),
  /** Unbiased estimate of the chance that at least one of k samples of a task has reward 1 or more. */
  passAtK: z.record(z.string(), TaskMean),
  /** Mean reward of the most frequent answer to each task; `null` with one sample. */
  majority: TaskMean.nullable(),
  /** Share of the tasks whose answer is the most frequent one of the data; `null` if answers are not known. */
  mostFrequentAnswer: z.number().nullable(),
  byKind: z.record(z.string(), TaskMean.extend({ rollouts: z.int() })),
  /** US dollars for the calls of agents; `null` if a price is not known. */
  cost: z.number().nullable(),
  /** US dollars for the calls of rewards to frozen models with a price. */
  rewardCost: z.number(),
  /** Tokens of the calls of agents. */
  usage: Usage,
  /** Means over the rollouts with a result. */
  perRollout: z.strictObject({ turns: z.number(), toolCalls: z.number(), seconds: z.number() }),
  /** Rollouts that answered without a call to the gateway, so that their turns and cost are not known. */
  unseen: z.int(),
  comparison: EvaluationComparison.nullable(),
  counts: z.strictObject(callCounts),
  tokenReport: TokenReport,
  times: z.strictObject({ wallMs: z.number() }),
  versions: z.record(z.string(), z.string()),
})
export type EvaluationReport = z.infer<typeof EvaluationReport>

/** One line of `results.jsonl`: a rollout of an evaluation, in the order of its tasks and samples. */
export const EvaluationRow = z.strictObject({
  taskId: z.string(),
  /** Hash of what the agent gets, the bytes of its files included. Equal tasks of two evaluations have equal hashes. */
  taskHash: z.string(),
  kind: z.string(),
  sample: z.int(),
  rollout: z.string(),
  answer: z.string().nullable(),
  reward: z.number().nullable(),
  scores: z.record(z.string(), z.number()),
  /** `null`: it was not started. */
  stopReason: z.string().nullable(),
  /** Why it failed. */
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  turns: z.int(),
  toolCalls: z.int(),
  /** US dollars; `null` if a price is not known. */
  cost: z.number().nullable(),
  durationMs: z.number(),
})
export type EvaluationRow = z.infer<typeof EvaluationRow>

/** The report of an evaluation with its rollouts, in the order of tasks and samples. */
export interface EvaluationWithResults extends EvaluationReport {
  readonly results: readonly EvaluationRow[]
}
