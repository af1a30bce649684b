import { z } from 'zod'

const tally = z.record(z.string(), z.int().min(0))

/** Calls to one frozen model through the gateway, in the attempts that were kept. */
export const FrozenUse = z.strictObject({
  calls: z.int().min(0),
  promptTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  /** US dollars; `null` if the model has no price. */
  cost: z.number().min(0).nullable(),
})
export type FrozenUse = z.infer<typeof FrozenUse>

/**
 * Effects of agents and their clients on the record of tokens. Nothing here is an error; it shows where prompts did not simply continue.
 */
export const TokenReport = z.strictObject({
  version: z.literal(1),
  /** Recorded calls to policies. The following counts are of these. */
  turns: z.int().min(0),
  /** Calls whose prompt is an earlier call's, the tokens sampled there, and additions. */
  continuations: z.int().min(0),
  /** First calls of an agent in an attempt. */
  roots: z.int().min(0),
  /**
   * Later calls that began anew, by reason: `system-prompt` if the system prompt differs from that of the first call, `no-match` if the
   * rest of the history does, `tools` if the tools do, and others of the template.
   */
  branches: tally,
  /** Calls that repeat an earlier one, because their client retries or wants several answers. */
  repeated: z.int().min(0),
  /** Answers that did not reach their client. */
  abandoned: z.int().min(0),
  /** Calls that had no answer. */
  failed: z.int().min(0),
  /** Differences from the record that a continuation tolerated, by kind. Each is counted in every call that shows it. */
  tolerated: tally,
  /** Tool calls that were sampled but delivered as text, by kind. */
  unparsed: tally,
  /** Request fields without effect, by name. */
  ignored: tally,
  /** Calls to frozen models, by model. They are in none of the counts of recorded calls. */
  frozen: z.record(z.string(), FrozenUse).default({}),
})
export type TokenReport = z.infer<typeof TokenReport>
