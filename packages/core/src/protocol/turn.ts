import { z } from 'zod'
import { Constraint } from './constraint.ts'
import { Message, ToolCall } from './message.ts'
import { LogprobKind, Sampling } from './sampling.ts'
import { Logprobs, MixedVersions, TokenIds, WeightVersionSpan } from './tokens.ts'

/** Reason for the end of a model call: our word, and the engine's own beside it. */
export const FinishReason = z.strictObject({
  unified: z.enum(['stop', 'tool-calls', 'length', 'aborted', 'error']),
  raw: z.string(),
})
export type FinishReason = z.infer<typeof FinishReason>

/** How the tokens were captured, and which logprob they carry. `none` is text without tokens. */
export const Capture = z.strictObject({
  tokens: z.enum(['token-in', 'engine-reported', 'none']),
  logprobs: LogprobKind,
})
export type Capture = z.infer<typeof Capture>

/** Whether the client received the completion: wholly, not (it hung up), or not yet known. */
export const Delivery = z.enum(['delivered', 'abandoned', 'pending'])
export type Delivery = z.infer<typeof Delivery>

export const Usage = z.strictObject({
  promptTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  cachedTokens: z.int().min(0).default(0),
})
export type Usage = z.infer<typeof Usage>

export const Timing = z.strictObject({
  /** Unix milliseconds, with fractions. */
  startedAt: z.number(),
  endedAt: z.number(),
})
export type Timing = z.infer<typeof Timing>

/**
 * One model call and the tool results it caused.
 * `promptTokenIds` begins with the parent's prompt and completion when `parent` is a number;
 * on disk only the suffix is kept. `completionTokenIds` and `rolloutLogprobs` have equal length.
 */
export const Turn = z.strictObject({
  version: z.literal(2),
  /** Place among the turns of its invocation. */
  index: z.int().min(0),
  agent: z.string(),
  /** Id of the invocation that made it. */
  trajectory: z.string(),
  attempt: z.int().min(0),
  /** Index of the turn that this one continues; `null` at a root. */
  parent: z.int().min(0).nullable(),
  /** Reasons why this turn is a root or a branch; empty for a continuation. */
  branchReasons: z.array(z.string()),
  promptTokenIds: TokenIds,
  completionTokenIds: TokenIds,
  rolloutLogprobs: Logprobs,
  weightVersions: z.array(WeightVersionSpan),
  /** Set if the boundary of an update inside the completion is not known. `weightVersions` then starts at the lowest. */
  mixedVersions: MixedVersions.optional(),
  finishReason: FinishReason,
  delivered: Delivery,
  /** Messages of the request that are not in the parent's conversation. */
  messagesDelta: z.array(Message),
  /** The assistant message as delivered. */
  message: Message,
  toolCalls: z.array(ToolCall),
  /** Tool calls that were sampled but delivered as text, by kind. */
  unparsed: z.array(z.string()).optional(),
  sampling: Sampling,
  /** The form that the engine enforced on the completion. Its logprobs are then `processed`. */
  constraint: Constraint.optional(),
  usage: Usage,
  timing: Timing,
  /** Time of the first token from the engine, in Unix milliseconds. Absent if the engine hands over a whole answer. */
  firstTokenAt: z.number().optional(),
  capture: Capture,
  /** Whether the request offered tools, or the run leaves the call out of training. Absent if all calls are trained. */
  callKind: z.enum(['with-tools', 'without-tools', 'left-out']).optional(),
  /** Model that answered, if it is not the policy of the rollout. */
  model: z.string().optional(),
  /** The name of the model in the answer of a third party, which may be another one than it was asked for. */
  responseModel: z.string().optional(),
  /**
   * Fields of the request that the gateway did not read, with their JSON as it was written. They have no effect, unless a chat engine or a
   * third party received them.
   */
  unusedFields: z.record(z.string(), z.string()).optional(),
  /** Cost in US dollars, for a frozen model with a price. */
  cost: z.number().min(0).optional(),
})
export type Turn = z.infer<typeof Turn>
