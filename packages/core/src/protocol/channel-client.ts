import { z } from 'zod'
import { ChannelFailure, ChannelPartition } from './channel.ts'
import { ToolDefinition } from './message.ts'

const name = z.string().min(1).max(512)
const count = z.int().min(0)
const json = z.json()

/** A message as in datasets: `content` may be a list of parts. */
const RowMessage = z.looseObject({ role: z.string(), content: json.optional() })

/** A conversation that both sides render. A difference of template or tokenizer thus shows before it costs a run. */
export const ChannelCheck = z.strictObject({
  messages: z.array(RowMessage).min(1),
  tools: z.array(z.union([ToolDefinition, z.looseObject({ type: z.literal('function') })])).nullable(),
  /** Variables for every rendering of the run, such as `{ enable_thinking: false }`. */
  templateArguments: z.record(z.string(), json),
})
export type ChannelCheck = z.infer<typeof ChannelCheck>

/** First message of a trainer client's worker. Array `renderedIds` (int32): `check` rendered with a generation prompt by the trainer client's tokenizer. */
export const ChannelHello = z.strictObject({
  type: z.literal('hello'),
  protocol: z.int(),
  /** Name of the run; the same after a restart of the trainer client. */
  run: name,
  /** This start of the trainer client: a newer one supersedes the older ones of its run. */
  incarnation: name,
  /** This worker among those of its incarnation. The name survives a reconnect. */
  worker: name,
  framework: z.strictObject({ name, version: z.string() }),
  model: z.strictObject({ name, vocabularySize: z.int().min(1), stopTokenIds: z.array(count).min(1) }),
  /** The hash of the tokenizer's files, as `filesHash` computes it. */
  tokenizerHash: z.string().regex(/^[\w-]{1,128}$/, 'must be letters and digits'),
  templateHash: name,
  /**
   * Limits in tokens. A row is a prompt of at most `maxPromptTokens` and a response of at most `maxResponseTokens`. `contextLength` is the
   * engine's, or their sum.
   */
  limits: z.strictObject({ maxPromptTokens: z.int().min(1), maxResponseTokens: z.int().min(1), contextLength: z.int().min(1).nullable() }),
  check: ChannelCheck,
})
export type ChannelHello = z.infer<typeof ChannelHello>

/** The model's tokenizer files, each a uint8 array under its name. Sent only after `welcome.needFiles`. */
export const ChannelFiles = z.strictObject({
  type: z.literal('files'),
  files: z.array(z.strictObject({ name: z.string().regex(/^\w[\w.-]{0,127}$/, 'must be a plain file name') })).min(1),
})
export type ChannelFiles = z.infer<typeof ChannelFiles>

/** A row of the trainer client's dataset as plain JSON. Columns without a name here stand in `columns`. */
export const ChannelDatasetRow = z.strictObject({
  prompt: z.array(RowMessage),
  dataSource: z.string().nullish(),
  rewardModel: json.nullish(),
  extraInfo: z.record(z.string(), json).nullish(),
  index: json.nullish(),
  columns: z.record(z.string(), json).nullish(),
})
export type ChannelDatasetRow = z.infer<typeof ChannelDatasetRow>

/** How the trainer client samples. `topK` of 0 or -1 keeps every token. */
export const ChannelSampling = z.strictObject({
  temperature: z.number().min(0),
  topP: z.number().gt(0).max(1),
  topK: z.int().min(-1),
  repetitionPenalty: z.number().gt(0),
})
export type ChannelSampling = z.infer<typeof ChannelSampling>

/** Asks for one rollout. The same key means the same rollout. */
export const ChannelSubmit = z.strictObject({
  type: z.literal('submit'),
  /** `run/incarnation/partition/step/uid/sample`, each part percent-encoded as by `encodeURIComponent`. */
  key: z.string().min(1).max(4096),
  partition: ChannelPartition,
  step: z.int(),
  /** Name of the group, whose rollouts are of one task and are compared. */
  uid: name,
  sample: count,
  row: ChannelDatasetRow,
  sampling: ChannelSampling,
  /** Milliseconds that an attempt of the agent may take from its start. Queueing does not count. */
  deadlineMs: z.int().min(1).nullable(),
})
export type ChannelSubmit = z.infer<typeof ChannelSubmit>

export const ChannelCancel = z.strictObject({ type: z.literal('cancel'), key: z.string().min(1), reason: z.string() })
export type ChannelCancel = z.infer<typeof ChannelCancel>

/** Answers `generate`. Arrays of equal length: `ids` (int32), the stop token included, and `logprobs` (float32). */
export const ChannelGenerated = z.strictObject({
  type: z.literal('generated'),
  id: count,
  finish: z.enum(['stop', 'length', 'aborted']),
  /** Lowest and highest version of the weights that may have sampled. */
  minVersion: count,
  maxVersion: count,
})
export type ChannelGenerated = z.infer<typeof ChannelGenerated>

export const ChannelGenerateFailed = z.strictObject({ type: z.literal('generate-failed'), id: count, error: ChannelFailure })
export type ChannelGenerateFailed = z.infer<typeof ChannelGenerateFailed>

/** Announces that other weights sample. Informative. */
export const ChannelWeights = z.strictObject({ type: z.literal('weights'), version: count })
export type ChannelWeights = z.infer<typeof ChannelWeights>

/** The trainer has taken over the rows of a result. */
export const ChannelAccepted = z.strictObject({ type: z.literal('accepted'), key: z.string().min(1) })
export type ChannelAccepted = z.infer<typeof ChannelAccepted>

/** A result could not be turned into the trainer's rows. */
export const ChannelRefused = z.strictObject({ type: z.literal('refused'), key: z.string().min(1), error: ChannelFailure })
export type ChannelRefused = z.infer<typeof ChannelRefused>

/** What a trainer client says to the service. */
export const TrainerClientMessage = z.discriminatedUnion('type', [
  ChannelHello,
  ChannelFiles,
  ChannelSubmit,
  ChannelCancel,
  ChannelGenerated,
  ChannelGenerateFailed,
  ChannelWeights,
  ChannelAccepted,
  ChannelRefused,
])
export type TrainerClientMessage = z.infer<typeof TrainerClientMessage>
