import { z } from 'zod'
import { Message } from './message.ts'

/** Prepares the workspace of a rollout before its agent starts: files by path, and commands that run there one after the other. */
export const TaskSetup = z.strictObject({
  files: z.record(z.string().min(1), z.string()).optional(),
  commands: z.array(z.string().min(1)).optional(),
})
export type TaskSetup = z.infer<typeof TaskSetup>

/**
 * One problem, immutable, for training or evaluation. `hash` covers everything that the row declares for the agent. The `Task` of the agent
 * package is the input of `Runners`: an input with the agent that works on it.
 */
export const TrainingTask = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  hash: z.string(),
  input: z.union([z.string(), z.array(Message)]),
  /** Data that the row declares for the agent and its tools, beside the prompt. */
  data: z.record(z.string(), z.unknown()),
  /** Paths of files that the environment copies into the rollout's workspace, each under the last part of its path. */
  files: z.array(z.string()).optional(),
  /** For the environment, never for the agent. */
  setup: TaskSetup.optional(),
  dataSource: z.string(),
  /** All other columns of the row, which may give the answer away. They are for the reward function, never for the agent. */
  extraInfo: z.record(z.string(), z.unknown()),
})
export type TrainingTask = z.infer<typeof TrainingTask>

/** A task as its agent and tools see it. `files` are names, which the end of the input lists. */
export type AgentTask = Omit<TrainingTask, 'extraInfo' | 'setup'>

/** The reference answer of a task. Only the reward function reads it. */
export const AnswerKey = z.strictObject({
  version: z.literal(1),
  taskId: z.string().min(1),
  groundTruth: z.unknown(),
})
export type AnswerKey = z.infer<typeof AnswerKey>
