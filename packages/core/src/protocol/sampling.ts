import { z } from 'zod'

/** How the policy's tokens are drawn. Temperature 0 is greedy. */
export const Sampling = z.strictObject({
  temperature: z
    .number()
    .min(0)
    .default(1)
    .describe('Temperature that tokens are drawn with. A lower value takes likely tokens more often; 0 always takes the likeliest.'),
  topP: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe('Part of the probability that tokens are drawn from, likeliest first. 1 keeps every token.'),
  topK: z.int().min(0).default(0).describe('Number of likeliest tokens that are drawn from. 0 keeps every token.'),
  maxTokens: z.int().min(1).describe('Tokens that one answer of the model may have. A longer one is cut.'),
  stop: z.array(z.string().min(1)).default([]).describe('Texts that end an answer where the model writes one of them.'),
  seed: z.int().default(0).describe('Seed of the draws of one call.'),
})
export type Sampling = z.infer<typeof Sampling>

/** The logprob that an engine reports: log-softmax of logits / temperature before truncation, after it, or of the bare logits. */
export const LogprobKind = z.enum(['temperature', 'processed', 'raw'])
export type LogprobKind = z.infer<typeof LogprobKind>
