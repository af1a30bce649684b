import { z } from 'zod'

const tally = z.record(z.string(), z.int().min(0))

/** Calls to one frozen model that was asked through the gateway, of the attempts that were kept. */
export const FrozenUse = z.strictObject({
  calls: z.int().min(0),
  promptTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  /** US dollars; `null` where the model has no price. */
  cost: z.number().min(0).nullable(),
})
export type FrozenUse = z.infer<typeof FrozenUse>

/** What agents and their clients did to the record of tokens. Nothing here is an error: it says where prompts did not simply go on. */
export const TokenReport = z.strictObject({
  version: z.literal(1),
  /** Recorded calls to policies; what follows is of these. */
  turns: z.int().min(0),
  /** Calls whose prompt is an earlier call's, the tokens sampled there, and what was added since. */
  continuations: z.int().min(0),
  /** First calls of an agent in an attempt. */
  roots: z.int().min(0),
  /** Later calls that began anew, by reason: `system-prompt` where the system prompt is not that of the first call, `no-match` where the rest of the history is, `tools` where the tools are, others of the template. */
  branches: tally,
  /** Calls that ask again what an earlier one asked, as clients do that retry or want several answers. */
  repeated: z.int().min(0),
  /** Answers that did not reach their client. */
  abandoned: z.int().min(0),
  /** Calls that had no answer. */
  failed: z.int().min(0),
  /** Differences from the record that a continuation tolerated, by kind, each counted in every call that shows it. */
  tolerated: tally,
  /** What was sampled as a tool call and delivered as text, by kind. */
  unparsed: tally,
  /** Request fields without effect, by name. */
  ignored: tally,
  /** Calls to frozen models, by model; they are in none of the counts of recorded calls. */
  frozen: z.record(z.string(), FrozenUse).default({}),
})
export type TokenReport = z.infer<typeof TokenReport>
