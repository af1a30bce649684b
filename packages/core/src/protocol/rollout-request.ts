import { z } from 'zod'
import { Sampling } from './sampling.ts'
import { TrainingTask } from './task.ts'

/** Default duration of an attempt. */
export const defaultAttemptMs = 120_000

/** Limits of one rollout. A missing one means unlimited, except for the defaults of the rollout runner. Queue time never counts. */
export const RolloutLimits = z.strictObject({
  maxTurns: z.int().min(1).optional().describe('Turns of the policy in one rollout; a turn is a model call with its tool results.'),
  maxTokens: z.int().min(1).optional().describe('Tokens that the policy may sample in one rollout, over all its turns.'),
  maxResponseTokens: z.int().min(1).optional().describe('Tokens of one conversation from the first sampled one on, tool results included.'),
  maxToolCalls: z.int().min(0).optional().describe('Tool calls of one rollout.'),
  maxCost: z.number().min(0).optional().describe('US dollars that calls to models that are not trained may cost in one rollout.'),
  maxFrozenTokens: z
    .int()
    .min(0)
    .optional()
    .describe('Prompt and completion tokens that calls to models that are not trained may use in one rollout.'),
  timeoutMs: z
    .int()
    .min(1)
    .optional()
    .describe(`Wall time of one attempt of a rollout, in milliseconds. Left out, it is ${defaultAttemptMs}.`),
})
export type RolloutLimits = z.infer<typeof RolloutLimits>

/**
 * A job to run the agent once on a task. `key` is its name, unique within a run; the same key means the same rollout. Records and events of
 * the rollout have the key as `rollout`, its RolloutState as `id`.
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
  /** Kind of task, by which results are split. Default: the task's data source. */
  kind: z.string().optional(),
  policy: z.string(),
  sampling: Sampling,
  limits: RolloutLimits,
})
export type RolloutRequest = z.infer<typeof RolloutRequest>
