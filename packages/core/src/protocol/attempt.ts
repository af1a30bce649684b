import { z } from 'zod'
import { CollectedFile } from './collected-files.ts'
import { ErrorRecord, InvocationStart, ToolCallRecord, Trajectory } from './episode.ts'
import { Message } from './message.ts'
import { TrainingTask } from './task.ts'
import { Timing } from './turn.ts'

/** Address and key of an agent's model, for any OpenAI client. A `baseUrl` is an address and a secret in one. */
export const AgentEndpoint = z.strictObject({ baseUrl: z.string(), apiKey: z.string(), model: z.string() })
export type AgentEndpoint = z.infer<typeof AgentEndpoint>

/** One attempt of a rollout, for the side that runs its agent. It has nothing that only the reward may know. */
export const AttemptAssignment = z.strictObject({
  /** Key of the rollout. */
  key: z.string().min(1),
  attempt: z.int().min(0),
  sample: z.int().min(0),
  /** `setup` is for the environment, never for the agent. */
  task: TrainingTask.omit({ extraInfo: true }),
  /** Keyed by the name of the agent. They answer until the attempt has ended. */
  endpoints: z.record(z.string(), AgentEndpoint),
  /** Limits that the agent's side enforces. Model calls and tokens are counted where they are sampled. */
  limits: z.strictObject({
    maxTurns: z.int().min(1).optional(),
    maxToolCalls: z.int().min(0).optional(),
    /** Running time in milliseconds. Opening tools and states, and calls that are held while weights change, do not count. */
    timeoutMs: z.int().min(1),
  }),
  /** Header lines that make spans of the agent's side children of the attempt's span. */
  traceHeaders: z.record(z.string(), z.string()).optional(),
})
export type AttemptAssignment = z.infer<typeof AttemptAssignment>

/** The end of an agent's run, seen from outside. `abandoned`: it did not return after it was told to stop. */
export const AgentEnd = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('answered'),
    answer: z.string().nullable(),
    messages: z.array(Message),
    /** Set by an agent that stopped at its own limit of turns. */
    stopped: z.literal('turn-limit').optional(),
    /** Whether an agent met a limit that it shares with others, of the rollout or of a swarm. */
    metSharedLimit: z.literal(true).optional(),
  }),
  z.strictObject({ kind: z.literal('threw'), error: ErrorRecord }),
  z.strictObject({ kind: z.literal('abandoned') }),
])
export type AgentEnd = z.infer<typeof AgentEnd>

/** A tool call before it is linked to the turn that asked for it. */
export const ExecutedToolCall = ToolCallRecord.omit({ turn: true }).extend({
  /** The model's id for the call; absent if the agent passed none. */
  id: z.string().optional(),
})
export type ExecutedToolCall = z.infer<typeof ExecutedToolCall>

/** An invocation as the agent's side saw it, before it is linked to its turns. */
export const InvocationRecord = Trajectory.pick({ id: true, agent: true }).extend({
  startedBy: z.array(
    InvocationStart.omit({ turn: true }).extend({
      /** `null` if only the tool call is known, which then says whose it is. */
      trajectory: z.string().nullable(),
    }),
  ),
  /** Whether it ended with an answer. */
  answered: z.boolean(),
  /** `null` if the program did not say when it began and ended. */
  timing: Timing.nullable(),
})
export type InvocationRecord = z.infer<typeof InvocationRecord>

/** Report of an attempt's agent side at its end. The turns are where they were sampled. */
export const AttemptOutcome = z.strictObject({
  end: AgentEnd,
  /** Reason why the agent was told to stop before its end; `null` if it was not. */
  aborted: ErrorRecord.nullable(),
  /** The first lost tool server or refused lease. */
  environmentFailure: ErrorRecord.nullable(),
  /** In the order in which they began. */
  invocations: z.array(InvocationRecord),
  /** In the order in which they began. */
  toolCalls: z.array(ExecutedToolCall),
  /** Tool calls that had failed when the agent ended, and those that no server answered. */
  toolErrors: z.int().min(0),
  functionCalls: z.int().min(0),
  /** Files that the environment collected; absent if it collects none, empty if they were refused. */
  files: z.array(CollectedFile).optional(),
  /** The reason why they were refused. */
  filesRefused: ErrorRecord.optional(),
  /** Errors of giving tools and states back. */
  problems: z.array(ErrorRecord),
  /** From the start of the agent to its end, by the clock of its side. */
  timing: Timing,
})
export type AttemptOutcome = z.infer<typeof AttemptOutcome>
