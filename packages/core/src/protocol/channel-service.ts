import { z } from 'zod'
import { ChannelFailure, channelProtocol, RowSelection } from './channel.ts'
import { StopReason } from './episode.ts'
import { UntrainedReason } from './token-ledger.ts'

const count = z.int().min(0)

/** Answers `hello`. */
export const ChannelWelcome = z.strictObject({
  type: z.literal('welcome'),
  protocol: z.literal(channelProtocol),
  /** Version of the service's package. */
  service: z.string(),
  /** Whether the tokenizer's files are missing here and must be sent with `files`. */
  needFiles: z.boolean(),
  /** How long the rollouts of a lost connection are kept. */
  graceMs: count,
  pingMs: count,
  settings: z.strictObject({
    /** Longest attempt of a rollout; `null` if each submission sets it. */
    rolloutTimeoutMs: z.int().min(1).nullable(),
    /** `native`: the trainer scores, and results carry no reward. */
    reward: z.enum(['service', 'native']),
    rowSelection: RowSelection,
  }),
})
export type ChannelWelcome = z.infer<typeof ChannelWelcome>

/** Both sides render alike, so rollouts may be submitted. */
export const ChannelReady = z.strictObject({ type: z.literal('ready') })
export type ChannelReady = z.infer<typeof ChannelReady>

/** The trainer client is not served; the connection closes with 4000. */
export const ChannelRejected = z.strictObject({ type: z.literal('rejected'), error: ChannelFailure })
export type ChannelRejected = z.infer<typeof ChannelRejected>

export const ChannelQueued = z.strictObject({ type: z.literal('queued'), key: z.string() })
export type ChannelQueued = z.infer<typeof ChannelQueued>

/** The rollout runs. Its deadlines begin now. */
export const ChannelStarted = z.strictObject({ type: z.literal('started'), key: z.string() })
export type ChannelStarted = z.infer<typeof ChannelStarted>

/** A model call of the rollout. Array `promptIds` (int32). `id` is unique in the connection. */
export const ChannelGenerate = z.strictObject({
  type: z.literal('generate'),
  id: count,
  key: z.string(),
  agent: z.string(),
  /** Id of the invocation. */
  trajectory: z.string(),
  /** Index of the call in its invocation, or a number of its prompt. */
  turn: count,
  sampling: z.strictObject({
    temperature: z.number().min(0),
    topP: z.number().gt(0).max(1),
    topK: z.int().min(0),
    maxTokens: z.int().min(1),
    stop: z.array(z.string()),
  }),
})
export type ChannelGenerate = z.infer<typeof ChannelGenerate>

/** Nobody waits for that `generate` any more. */
export const ChannelAbort = z.strictObject({ type: z.literal('abort'), id: count })
export type ChannelAbort = z.infer<typeof ChannelAbort>

/** One row: `promptLength` ids of prompt, then the response up to `length`. */
export const ChannelResultRow = z.strictObject({
  agent: z.string(),
  /** Id of the invocation. */
  trajectory: z.string(),
  promptLength: z.int().min(1),
  length: z.int().min(2),
  /** Lowest and highest version of the weights that sampled its mask-1 tokens. */
  minVersion: count,
  maxVersion: count,
  /** Turn indices of the branch, from the root on. */
  turns: z.array(count),
  reward: z.number().nullable(),
})
export type ChannelResultRow = z.infer<typeof ChannelResultRow>

/**
 * The end of a rollout. For row i there are arrays `ids.i` (int32), `mask.i` (uint8) and `logprobs.i` (float32), each of its `length`. Mask
 * 1 marks tokens of the policy, each at most once in all rows. The primary row is the last.
 */
export const ChannelResult = z.strictObject({
  type: z.literal('result'),
  key: z.string(),
  /** `failed`: none of it may be trained; in `val` it scores 0. */
  status: z.enum(['done', 'failed']),
  /** `null` without an episode. */
  stopReason: StopReason.nullable(),
  /** `null` if it is not scored, because the trainer scores or because it failed. */
  reward: z.number().nullable(),
  scores: z.record(z.string(), z.number()),
  error: ChannelFailure.nullable(),
  turns: count,
  /** Sums of milliseconds of model calls and of tool calls. */
  generateMs: z.number().min(0),
  toolMs: z.number().min(0),
  rows: z.array(ChannelResultRow),
  /** Sampled tokens that have mask 1 in no row, by reason. */
  omitted: z.partialRecord(UntrainedReason, count),
  answer: z.string().nullable(),
  /** The `solutionStr` of a reward function. */
  solution: z.string().nullable(),
})
export type ChannelResult = z.infer<typeof ChannelResult>

/** A message could not be read; the connection closes with 4001. */
export const ChannelError = z.strictObject({ type: z.literal('error'), message: z.string() })
export type ChannelError = z.infer<typeof ChannelError>

/** What the service says to a trainer client. */
export const ServiceMessage = z.discriminatedUnion('type', [
  ChannelWelcome,
  ChannelReady,
  ChannelRejected,
  ChannelQueued,
  ChannelStarted,
  ChannelGenerate,
  ChannelAbort,
  ChannelResult,
  ChannelError,
])
export type ServiceMessage = z.infer<typeof ServiceMessage>
