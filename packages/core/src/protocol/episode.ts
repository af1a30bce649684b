import { z } from 'zod'
import { Message, ToolImage, ToolResult } from './message.ts'
import { Timing, Turn } from './turn.ts'

/** The turns of one agent in an episode, which form a tree by `parent`. */
export const Trajectory = z.strictObject({
  version: z.literal(1),
  agent: z.string(),
  policy: z.string(),
  trainable: z.boolean(),
  turns: z.array(Turn),
})
export type Trajectory = z.infer<typeof Trajectory>

/** A call or handoff from one agent to another. */
export const AgentEdge = z.strictObject({
  from: z.string(),
  to: z.string(),
  kind: z.enum(['sequence', 'handoff', 'agent-as-tool', 'parallel']),
})
export type AgentEdge = z.infer<typeof AgentEdge>

/** Reason for the end of an episode. Only `completed` is an answer. */
export const StopReason = z.enum([
  'completed',
  'turn-limit',
  'token-limit',
  'tool-call-limit',
  'cost-limit',
  'time-limit',
  'context-overflow',
  'truncated',
  'cancelled',
  'no-model-call',
  'failed',
])
export type StopReason = z.infer<typeof StopReason>

export const ErrorBoundary = z.enum(['agent', 'environment', 'gateway', 'policy', 'reward', 'store', 'trainer', 'config'])
export type ErrorBoundary = z.infer<typeof ErrorBoundary>

export const ErrorRecord = z.strictObject({
  code: z.string(),
  boundary: ErrorBoundary,
  retryable: z.boolean(),
  message: z.string(),
  /** File and line of the user's code that threw it, such as `/project/reward.ts:12`. */
  source: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
})
export type ErrorRecord = z.infer<typeof ErrorRecord>

/** One executed tool call. */
export const ToolCallRecord = z.strictObject({
  agent: z.string(),
  /** Index of the turn that asked for it; `null` if the agent made the call itself. */
  turn: z.int().min(0).nullable(),
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
  content: z.string(),
  isError: z.boolean(),
  /** The first pictures that the tools of a rollout returned, up to a mebibyte. */
  images: z.array(ToolImage).optional(),
  source: ToolResult.shape.source,
  timing: Timing,
})
export type ToolCallRecord = z.infer<typeof ToolCallRecord>

/** The result of a rollout. A failed episode has the same fields and keeps the turns so far. */
export const Episode = z.strictObject({
  version: z.literal(1),
  rollout: z.string(),
  attempt: z.int().min(0),
  taskId: z.string(),
  group: z.string(),
  sample: z.int().min(0),
  split: z.string(),
  trajectories: z.array(Trajectory),
  edges: z.array(AgentEdge),
  toolCalls: z.array(ToolCallRecord),
  /** The final answer; `null` if there is none. */
  answer: z.string().nullable(),
  messages: z.array(Message),
  scores: z.record(z.string(), z.number()),
  /** `null` if it is not scored. */
  reward: z.number().nullable(),
  stopReason: StopReason,
  error: ErrorRecord.optional(),
  timing: Timing,
})
export type Episode = z.infer<typeof Episode>
