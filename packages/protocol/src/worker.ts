import { z } from 'zod'
import { AttemptAssignment, AttemptOutcome } from './attempt.ts'
import { ChannelFailure } from './channel.ts'

/** Version of the worker protocol: a worker and a coordinator that name another one refuse each other. */
export const workerProtocol = 2

/** Where a worker's WebSocket goes, on the port of the rollout service. */
export const workersPath = '/v1/workers'

/** Where a worker gets files of tasks, on the same port: followed by the SHA-256 of a file in hexadecimal digits. */
export const filesPath = '/v1/files/'

const name = z.string().min(1).max(512)
const count = z.int().min(0)

/** One attempt of a rollout, by name. */
const attempt = { key: z.string().min(1), attempt: count }
export const AttemptName = z.strictObject(attempt)
export type AttemptName = z.infer<typeof AttemptName>

/** First message of a worker. */
export const WorkerHello = z.strictObject({
  type: z.literal('hello'),
  protocol: z.int(),
  /** Unique among the workers of a coordinator. */
  name,
  /** This start of the worker, or what it is since it gave up what it had: what an earlier one of its name was assigned is lost. */
  incarnation: name,
  /** Attempts that it runs at once. */
  slots: z.int().min(1),
  /** Says which agent it runs: a coordinator takes only workers of its own agent. */
  agentHash: name,
  /** What that hash is made of, by name, so that a refusal says what differs. */
  agentParts: z.record(z.string(), z.string()).default({}),
  /** Attempts that it runs, and those whose result it still has. */
  holding: z.array(AttemptName),
  /** It takes nothing more, and leaves when it holds nothing. */
  draining: z.boolean(),
})
export type WorkerHello = z.infer<typeof WorkerHello>

/** A tool call of an attempt that has no answer yet. */
export const OpenToolCall = z.strictObject({ ...attempt, tool: z.string(), openMs: z.number().min(0) })
export type OpenToolCall = z.infer<typeof OpenToolCall>

/** Comes every `welcome.beatMs`. */
export const WorkerBeat = z.strictObject({
  type: z.literal('beat'),
  holding: z.array(AttemptName),
  draining: z.boolean(),
  /** The oldest one of each attempt that has one. */
  openCalls: z.array(OpenToolCall).default([]),
})
export type WorkerBeat = z.infer<typeof WorkerBeat>

/** How the agent's side of an attempt ended. A worker repeats it until it is told that the result is kept. */
export const WorkerResult = z.strictObject({ type: z.literal('result'), ...attempt, outcome: AttemptOutcome })
export type WorkerResult = z.infer<typeof WorkerResult>

/** What a worker says to its coordinator. */
export const WorkerMessage = z.discriminatedUnion('type', [WorkerHello, WorkerBeat, WorkerResult])
export type WorkerMessage = z.infer<typeof WorkerMessage>

/** How a worker runs the tools of its agents: settings of its coordinator. */
export const WorkerEnvironment = z.strictObject({
  callTimeoutMs: z.int().min(1).optional(),
  startTimeoutMs: z.int().min(1).optional(),
  warmProcesses: count.optional(),
})
export type WorkerEnvironment = z.infer<typeof WorkerEnvironment>

/** Answers `hello`. */
export const WorkerWelcome = z.strictObject({
  type: z.literal('welcome'),
  protocol: z.literal(workerProtocol),
  beatMs: z.int().min(1),
  /** A worker that has heard nothing for this long gives up what it was assigned: somebody else has it by then. */
  leaseMs: z.int().min(1),
  /** Largest message that is taken, in bytes. */
  maxFrameBytes: z.int().min(1),
  environment: WorkerEnvironment,
})
export type WorkerWelcome = z.infer<typeof WorkerWelcome>

/** The worker is not taken; the connection closes with 4000. */
export const WorkerRejected = z.strictObject({ type: z.literal('rejected'), error: ChannelFailure })
export type WorkerRejected = z.infer<typeof WorkerRejected>

/** A file of a task as its coordinator has it. */
export const WorkerFile = z.strictObject({
  /** As `task.files` has it. */
  path: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal digits'),
  bytes: count,
  /** Its permissions, as POSIX has them. */
  mode: z.int().min(0).max(0o777),
})
export type WorkerFile = z.infer<typeof WorkerFile>

/** Asks a worker to run the agent of an attempt; again after a reconnect, where the worker does not hold it. */
export const WorkerAssign = AttemptAssignment.extend({
  type: z.literal('assign'),
  /** Those of `task.files` that the coordinator can read. A worker without one asks for it at `filesPath`. */
  files: z.array(WorkerFile).optional(),
})
export type WorkerAssign = z.infer<typeof WorkerAssign>

/** Nothing is sampled from now on, as weights change: time budgets stand still until `resume`. */
export const WorkerHold = z.strictObject({ type: z.literal('hold') })
export const WorkerResume = z.strictObject({ type: z.literal('resume') })

/** Asks for the result of an attempt now: its agent is to stop. */
export const WorkerCancel = z.strictObject({ type: z.literal('cancel'), ...attempt, reason: z.string() })

/** The attempt is not the worker's any more: it ends it and forgets its result. */
export const WorkerFence = z.strictObject({ type: z.literal('fence'), ...attempt })

/** The result has arrived; the worker forgets it. */
export const WorkerKept = z.strictObject({ type: z.literal('kept'), ...attempt })

/** The worker is to finish what it holds, take nothing more, and leave. */
export const WorkerDrain = z.strictObject({ type: z.literal('drain') })

/** A message could not be read; the connection closes with 4001. */
export const WorkerError = z.strictObject({ type: z.literal('error'), message: z.string() })

/** What a coordinator says to a worker. */
export const CoordinatorMessage = z.discriminatedUnion('type', [
  WorkerWelcome,
  WorkerRejected,
  WorkerAssign,
  WorkerHold,
  WorkerResume,
  WorkerCancel,
  WorkerFence,
  WorkerKept,
  WorkerDrain,
  WorkerError,
])
export type CoordinatorMessage = z.infer<typeof CoordinatorMessage>
