import { z } from 'zod'

/** Why a sampled token was not trained. The list is closed: anything else is `unexplained`. */
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
  /** Of a call beside an agent's work, such as one for a title: by default one without tools, of an agent that has tools. */
  'side-call',
  /** Of a rollout that had ended when its run was stopped, and that no step or evaluation had used: a run that is resumed uses it. */
  'in-flight',
  'lost-record',
])
export type UntrainedReason = z.infer<typeof UntrainedReason>

/**
 * Accounts for every token the policy sampled. `sampled` is counted in the sampler and
 * `trained` in the loss; the reasons come from the assembly of samples in between.
 */
export const TokenLedger = z.strictObject({
  version: z.literal(1),
  sampled: z.int().min(0),
  trained: z.int().min(0),
  untrained: z.partialRecord(UntrainedReason, z.int().min(0)),
  /** `sampled - trained - sum(untrained)`; not zero means that tokens were lost or counted twice. */
  unexplained: z.int(),
  /** Sampled tokens of groups whose rewards differ, and how many of these were trained. */
  withVariance: z.strictObject({ sampled: z.int().min(0), trained: z.int().min(0) }),
})
export type TokenLedger = z.infer<typeof TokenLedger>

/** The sampled tokens of one agent. What attempts without a result sampled is in `sampled` alone. */
export const AgentTokens = z.strictObject({
  sampled: z.int().min(0),
  trained: z.int().min(0),
  untrained: z.partialRecord(UntrainedReason, z.int().min(0)),
})
export type AgentTokens = z.infer<typeof AgentTokens>
