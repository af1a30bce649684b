import { z } from 'zod'
import { ErrorRecord, StopReason } from './episode.ts'
import { Message } from './message.ts'
import { FailureCount } from './report-parts.ts'

const at = { at: z.number() }

/**
 * The events of a run, from which terminal, log, dashboard and metrics are made. `at` is Unix milliseconds. The `version` of `run-start` is
 * that of all events up to the next.
 */
export const RunEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('run-start'),
    version: z.literal(1),
    ...at,
    run: z.string(),
    path: z.string(),
    seed: z.int(),
    resumedFromStep: z.int().nullable(),
    details: z.record(z.string(), z.unknown()),
    /** The policy that each agent asks for, if there are several. */
    policyOfAgent: z.record(z.string(), z.string()).optional(),
  }),
  z.strictObject({ type: z.literal('run-end'), ...at, status: z.enum(['finished', 'stopped', 'failed']), error: ErrorRecord.optional() }),
  z.strictObject({ type: z.literal('rollout-queued'), ...at, rollout: z.string(), split: z.string() }),
  z.strictObject({ type: z.literal('rollout-start'), ...at, rollout: z.string(), attempt: z.int(), split: z.string() }),
  z.strictObject({
    type: z.literal('rollout-end'),
    ...at,
    rollout: z.string(),
    attempt: z.int(),
    split: z.string(),
    taskId: z.string(),
    stopReason: StopReason,
    reward: z.number().nullable(),
    turns: z.int(),
    toolCalls: z.int(),
    sampledTokens: z.int(),
    /** US dollars for calls to models with a price; absent if there were none. */
    cost: z.number().optional(),
    durationMs: z.number(),
    error: ErrorRecord.optional(),
  }),
  z.strictObject({
    type: z.literal('group-end'),
    ...at,
    group: z.string(),
    taskId: z.string(),
    /** Rewards of the samples that were started; `null` for one that has none. */
    rewards: z.array(z.number().nullable()),
    /** `solved`: the first samples of the group were all solved, so the rest was not started. */
    why: z.enum(['full', 'solved']),
  }),
  z.strictObject({ type: z.literal('step-start'), ...at, step: z.int(), steps: z.int() }),
  z.strictObject({
    type: z.literal('step-end'),
    ...at,
    step: z.int(),
    steps: z.int(),
    weightVersion: z.int(),
    metrics: z.record(z.string(), z.number()),
  }),
  z.strictObject({ type: z.literal('weights-updated'), ...at, weightVersion: z.int() }),
  z.strictObject({
    type: z.literal('evaluation-start'),
    ...at,
    name: z.string(),
    rollouts: z.int(),
    /** Rollouts that have their result already. */ done: z.int().optional(),
  }),
  z.strictObject({
    type: z.literal('evaluation-end'),
    ...at,
    name: z.string(),
    step: z.int(),
    metrics: z.record(z.string(), z.number()),
    /** Reasons for failures, if rollouts failed. */
    failures: z.array(FailureCount).optional(),
  }),
  z.strictObject({ type: z.literal('checkpoint-saved'), ...at, step: z.int(), path: z.string(), best: z.boolean() }),
  z.strictObject({
    type: z.literal('phase-progress'),
    ...at,
    phase: z.string(),
    done: z.int(),
    total: z.int(),
    metrics: z.record(z.string(), z.number()),
  }),
  z.strictObject({
    type: z.literal('episode-sampled'),
    ...at,
    rollout: z.string(),
    taskId: z.string(),
    step: z.int(),
    reward: z.number().nullable(),
    messages: z.array(Message),
    /** The model that wrote each message, if that is not the policy. */
    models: z.array(z.string().nullable()).optional(),
  }),
  z.strictObject({ type: z.literal('warning-raised'), ...at, code: z.string(), message: z.string() }),
])
export type RunEvent = z.infer<typeof RunEvent>
