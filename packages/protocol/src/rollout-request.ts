import { z } from 'zod'
import { Sampling } from './sampling.ts'
import { TrainingTask } from './task.ts'

/** What one rollout may use. Absent is unlimited, but for the defaults of the rollout runner. Queue time never counts. */
export const RolloutLimits = z.strictObject({
  maxTurns: z.int().min(1).optional(),
  /** Tokens sampled over all turns. */
  maxTokens: z.int().min(1).optional(),
  /** Tokens of one conversation from its first sampled one on, tool results included. */
  maxResponseTokens: z.int().min(1).optional(),
  maxToolCalls: z.int().min(0).optional(),
  /** US dollars spent on frozen models. */
  maxCost: z.number().min(0).optional(),
  /** Prompt and completion tokens of frozen models. */
  maxFrozenTokens: z.int().min(0).optional(),
  /** Wall time of one attempt; 120,000 where nobody sets it. */
  timeoutMs: z.int().min(1).optional(),
})
export type RolloutLimits = z.infer<typeof RolloutLimits>

/** How long an attempt may take where nobody says it. */
export const defaultAttemptMs = 120_000

/**
 * The job: run the agent once on a task. `key` is its name, unique within a run: the same key again is the same rollout. Records
 * and events of the rollout have the key as `rollout`, its RolloutState as `id`.
 */
export const RolloutRequest = z.strictObject({
  version: z.literal(1),
  key: z.string().min(1),
  task: TrainingTask,
  group: z.string(),
  sample: z.int().min(0),
  split: z.string(),
  /** Training step that the rollout is for, or after which an evaluation is made. */
  step: z.int().min(0).optional(),
  /** Kind of task, by which results are told apart; the task's data source by default. */
  kind: z.string().optional(),
  policy: z.string(),
  sampling: Sampling,
  limits: RolloutLimits,
})
export type RolloutRequest = z.infer<typeof RolloutRequest>
