import { z } from 'zod'

/** Reason why a sampled token was not trained. The list is closed: anything else is `unexplained`. */
export const UntrainedReason = z.enum([
  'zero-variance-group',
  'group-of-one',
  'evaluation',
  'failed-episode',
  'truncated-episode',
  'cancelled-episode',
  'superseded-attempt',
  'abandoned-turn',
  'frozen-policy',
  'stale',
  'mixed-weights',
  'too-long',
  'not-scored',
  'unselected-by-trainer',
  /** Tokens of a call beside an agent's work, such as one for a title: by default a call without tools, of an agent that has tools. */
  'side-call',
  /** Tokens of a rollout that had ended when its run was stopped, and that no step or evaluation had used. A resumed run uses it. */
  'in-flight',
  'lost-record',
])
export type UntrainedReason = z.infer<typeof UntrainedReason>

/**
 * Accounts for every token that the policy sampled. `sampled` is counted in the sampler and `trained` in the loss. The reasons come from
 * the assembly of samples in between.
 */
export const TokenLedger = z.strictObject({
  version: z.literal(1),
  sampled: z.int().min(0),
  trained: z.int().min(0),
  untrained: z.partialRecord(UntrainedReason, z.int().min(0)),
  /** `sampled - trained - sum(untrained)`; not zero means that tokens were lost or counted twice. */
  unexplained: z.int(),
  /** Sampled tokens of groups whose rewards differ, and the trained part of them. */
  withVariance: z.strictObject({ sampled: z.int().min(0), trained: z.int().min(0) }),
})
export type TokenLedger = z.infer<typeof TokenLedger>

/** Account of every sampled token of a run or of one of its policies. */
export const LedgerSummary = TokenLedger.omit({ version: true, withVariance: true })
export type LedgerSummary = z.infer<typeof LedgerSummary>

/** The sampled tokens of one agent. Tokens of attempts without a result are only in `sampled`. */
export const AgentTokens = z.strictObject({
  sampled: z.int().min(0),
  trained: z.int().min(0),
  untrained: z.partialRecord(UntrainedReason, z.int().min(0)),
})
export type AgentTokens = z.infer<typeof AgentTokens>
