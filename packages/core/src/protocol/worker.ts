import { z } from 'zod'
import { AttemptAssignment, AttemptOutcome } from './attempt.ts'
import { ChannelFailure } from './channel.ts'

/** Version of the worker protocol. A worker and a coordinator with different versions refuse each other. */
export const workerProtocol = 4

/** Path of a worker's WebSocket, on the port of the rollout service. */
export const workersPath = '/v1/workers'

/** Path of files of tasks, on the same port. The SHA-256 of a file in hexadecimal digits follows it. */
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
  /**
   * This start of the worker. It changes when the worker gives its attempts up. Attempts that an earlier incarnation of the same name was
   * assigned are lost.
   */
  incarnation: name,
  /** Attempts that it runs at once. */
  slots: z.int().min(1),
  /** Identifies its agent. A coordinator takes only workers of its own agent. */
  agentHash: name,
  /** Parts of that hash, by name, so that a refusal can name the differences. */
  agentParts: z.record(z.string(), z.string()).default({}),
  /** Attempts that it runs, and those whose result it still holds. */
  holding: z.array(AttemptName),
  /** Whether it takes no more attempts, and leaves when it holds none. */
  draining: z.boolean(),
})
export type WorkerHello = z.infer<typeof WorkerHello>

/** An unanswered tool call of an attempt. */
export const OpenToolCall = z.strictObject({ ...attempt, tool: z.string(), openMs: z.number().min(0) })
export type OpenToolCall = z.infer<typeof OpenToolCall>

/** Sent every `welcome.beatMs`. */
export const WorkerBeat = z.strictObject({
  type: z.literal('beat'),
  holding: z.array(AttemptName),
  draining: z.boolean(),
  /** The oldest unanswered call of each attempt that has one. */
  openCalls: z.array(OpenToolCall).default([]),
})
export type WorkerBeat = z.infer<typeof WorkerBeat>

/** The end of an attempt on the agent's side. A worker repeats it until it is told that the result is kept. */
export const WorkerResult = z.strictObject({ type: z.literal('result'), ...attempt, outcome: AttemptOutcome })
export type WorkerResult = z.infer<typeof WorkerResult>

/** The messages of a worker to its coordinator. */
export const WorkerMessage = z.discriminatedUnion('type', [WorkerHello, WorkerBeat, WorkerResult])
export type WorkerMessage = z.infer<typeof WorkerMessage>

/** Settings of the coordinator for the tools that a worker runs. */
export const WorkerEnvironment = z.strictObject({
  callTimeoutMs: z.int().min(1).optional(),
  startTimeoutMs: z.int().min(1).optional(),
  warmProcesses: count.optional(),
  collect: z.array(z.string()).optional(),
})
export type WorkerEnvironment = z.infer<typeof WorkerEnvironment>

/** Answers `hello`. */
export const WorkerWelcome = z.strictObject({
  type: z.literal('welcome'),
  protocol: z.literal(workerProtocol),
  beatMs: z.int().min(1),
  /** A worker that has heard nothing for this long gives up its attempts, because they have been assigned to others by then. */
  leaseMs: z.int().min(1),
  /** Largest accepted message, in bytes. */
  maxFrameBytes: z.int().min(1),
  environment: WorkerEnvironment,
})
export type WorkerWelcome = z.infer<typeof WorkerWelcome>

/** The worker is refused. The connection closes with 4000. */
export const WorkerRejected = z.strictObject({ type: z.literal('rejected'), error: ChannelFailure })
export type WorkerRejected = z.infer<typeof WorkerRejected>

/** A file of a task on the coordinator's side. */
export const WorkerFile = z.strictObject({
  /** Path as in `task.files`. */
  path: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal digits'),
  bytes: count,
  /** POSIX permissions of the file. */
  mode: z.int().min(0).max(0o777),
})
export type WorkerFile = z.infer<typeof WorkerFile>

/** Asks a worker to run the agent of an attempt. Repeated after a reconnect if the worker does not hold the attempt. */
export const WorkerAssign = AttemptAssignment.extend({
  type: z.literal('assign'),
  /** Those of `task.files` that the coordinator can read. A worker that lacks one asks for it at `filesPath`. */
  files: z.array(WorkerFile).optional(),
})
export type WorkerAssign = z.infer<typeof WorkerAssign>

/**
 * Nothing is sampled until `resume`, because weights change, or for one attempt, because its model refuses calls for load. Time budgets stand
 * still.
 */
export const WorkerHold = z.strictObject({ type: z.literal('hold'), rollout: AttemptName.optional() })
export const WorkerResume = z.strictObject({ type: z.literal('resume'), rollout: AttemptName.optional() })

/** Asks for the result of an attempt at once. Its agent must stop. */
export const WorkerCancel = z.strictObject({ type: z.literal('cancel'), ...attempt, reason: z.string() })

/** The attempt no longer belongs to the worker, which ends it and forgets its result. */
export const WorkerFence = z.strictObject({ type: z.literal('fence'), ...attempt })

/** The result has arrived; the worker forgets it. */
export const WorkerKept = z.strictObject({ type: z.literal('kept'), ...attempt })

/** The worker finishes its attempts, takes no more, and leaves. */
export const WorkerDrain = z.strictObject({ type: z.literal('drain') })

/** A message could not be read; the connection closes with 4001. */
export const WorkerError = z.strictObject({ type: z.literal('error'), message: z.string() })

/** The messages of a coordinator to a worker. */
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
