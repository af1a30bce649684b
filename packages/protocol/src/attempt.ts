import { z } from 'zod'
import { AgentEdge, ErrorRecord, ToolCallRecord } from './episode.ts'
import { Message } from './message.ts'
import { TrainingTask } from './task.ts'
import { Timing } from './turn.ts'

/** Where the model of one agent is, and the key for it: what an OpenAI client needs. A `baseUrl` is an address and a secret in one. */
export const AgentEndpoint = z.strictObject({ baseUrl: z.string(), apiKey: z.string(), model: z.string() })
export type AgentEndpoint = z.infer<typeof AgentEndpoint>

/** One attempt of a rollout, for whoever runs its agent. What the reward alone may know is not in it. */
export const AttemptAssignment = z.strictObject({
  /** Key of the rollout. */
  key: z.string().min(1),
  attempt: z.int().min(0),
  sample: z.int().min(0),
  /** `setup` is for the environment, never for the agent. */
  task: TrainingTask.omit({ extraInfo: true }),
  /** By the names of the agents. They answer until the attempt has ended. */
  endpoints: z.record(z.string(), AgentEndpoint),
  /** What the agent's side keeps to; model calls and tokens are counted where they are sampled. */
  limits: z.strictObject({
    maxTurns: z.int().min(1).optional(),
    maxToolCalls: z.int().min(0).optional(),
    /** Running time in milliseconds. Opening tools and states, and calls that are held while weights change, do not count. */
    timeoutMs: z.int().min(1),
  }),
  /** Header lines by which the spans of the agent's side become children of the span of the attempt. */
  traceHeaders: z.record(z.string(), z.string()).optional(),
})
export type AttemptAssignment = z.infer<typeof AttemptAssignment>

/** How an agent's run ended, seen from outside. `abandoned`: it did not return after it was told to stop. */
export const AgentEnd = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('answered'),
    answer: z.string().nullable(),
    messages: z.array(Message),
    /** Set by an agent that stopped at its own limit of turns. */
    stopped: z.literal('turn-limit').optional(),
  }),
  z.strictObject({ kind: z.literal('threw'), error: ErrorRecord }),
  z.strictObject({ kind: z.literal('abandoned') }),
])
export type AgentEnd = z.infer<typeof AgentEnd>

/** A tool call before it is tied to the turn that asked for it. */
export const ExecutedToolCall = ToolCallRecord.omit({ turn: true }).extend({
  /** The model's id for the call; absent where the agent passed none. */
  id: z.string().optional(),
})
export type ExecutedToolCall = z.infer<typeof ExecutedToolCall>

/** What the agent's side of an attempt says when it has ended. Its turns are where they were sampled. */
export const AttemptOutcome = z.strictObject({
  end: AgentEnd,
  /** Why the agent was told to stop before its end; `null` when it was not. */
  aborted: ErrorRecord.nullable(),
  /** The first lost tool server or refused lease. */
  environmentFailure: ErrorRecord.nullable(),
  edges: z.array(AgentEdge),
  /** In the order in which they began. */
  toolCalls: z.array(ExecutedToolCall),
  /** Tool calls that had failed when the agent ended, and those that no server answered. */
  toolErrors: z.int().min(0),
  functionCalls: z.int().min(0),
  /** What went wrong when tools and states were given back. */
  problems: z.array(ErrorRecord),
  /** From the start of the agent to its end, by the clock of its side. */
  timing: Timing,
})
export type AttemptOutcome = z.infer<typeof AttemptOutcome>
