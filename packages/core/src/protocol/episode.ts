import { z } from 'zod'
import { EpisodeFile } from './collected-files.ts'
import { Message, ToolImage, ToolResult } from './message.ts'
import { Timing, Turn } from './turn.ts'

/** What started an invocation: a tool call of another one, or the answer that another one handed on. */
export const InvocationStart = z.strictObject({
  /** Id of the invocation that started this one. */
  trajectory: z.string(),
  /** Index of its turn that asked, or that gave the answer; `null` if it recorded no such turn. */
  turn: z.int().min(0).nullable(),
  /** Id of the tool call; `null` if an answer was handed on. */
  toolCall: z.string().nullable(),
})
export type InvocationStart = z.infer<typeof InvocationStart>

/**
 * The record of one invocation, which is one agent at work once, from its input to its answer. Its turns form a tree by `parent`. The
 * trajectories of an episode are ordered by the place of their agent in the program, then by id, with numbers as numbers.
 */
export const Trajectory = z.strictObject({
  version: z.literal(2),
  /** The agent's name for its first invocation; else the name and its place, such as `reader:planner.0.1`. */
  id: z.string(),
  agent: z.string(),
  policy: z.string(),
  trainable: z.boolean(),
  /** Empty for an invocation that works on the task; several for one that waited for several answers. */
  startedBy: z.array(InvocationStart),
  /** From its input to its answer; `null` for an agent that was never started. */
  timing: Timing.nullable(),
  turns: z.array(Turn),
})
export type Trajectory = z.infer<typeof Trajectory>

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
  /** Id of the invocation that made it. */
  trajectory: z.string(),
  /** Index of the turn that asked for it; `null` if the agent made the call itself. */
  turn: z.int().min(0).nullable(),
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
  content: z.string(),
  isError: z.boolean(),
  /** The first pictures that the tools of a rollout returned, up to a mebibyte, and as many of its desktop. */
  images: z.array(ToolImage).optional(),
  source: ToolResult.shape.source,
  timing: Timing,
})
export type ToolCallRecord = z.infer<typeof ToolCallRecord>

/** The result of a rollout. A failed episode has the same fields and keeps the turns so far. */
export const Episode = z.strictObject({
  version: z.literal(2),
  rollout: z.string(),
  attempt: z.int().min(0),
  taskId: z.string(),
  group: z.string(),
  sample: z.int().min(0),
  split: z.string(),
  trajectories: z.array(Trajectory),
  toolCalls: z.array(ToolCallRecord),
  /** The final answer; `null` if there is none. */
  answer: z.string().nullable(),
  messages: z.array(Message),
  scores: z.record(z.string(), z.number()),
  /** `null` if it is not scored. */
  reward: z.number().nullable(),
  /** Calls of frozen models by the reward, an invocation for each model. They are no part of the agent's turns, tokens and cost. */
  rewardTrajectories: z.array(Trajectory).optional(),
  /** Set if the reward compared the episodes of the group, and has given this one its value, abstained or failed. */
  groupScored: z.literal(true).optional(),
  /** Rewards of agents of their own, by name, where the reward function returned any. */
  agentRewards: z.record(z.string(), z.number()).optional(),
  stopReason: StopReason,
  /**
   * Set if invocations worked side by side and one of them met a limit that they share, or stopped the others. How far each of them came is
   * chance, so nothing of the episode is trained.
   */
  limitedSideBySide: z.literal(true).optional(),
  error: ErrorRecord.optional(),
  /** Files that were collected when the workspace closed; absent if the run collects none, empty if they were refused. */
  files: z.array(EpisodeFile).optional(),
  /** The reason why they were refused. */
  filesRefused: ErrorRecord.optional(),
  timing: Timing,
})
export type Episode = z.infer<typeof Episode>
