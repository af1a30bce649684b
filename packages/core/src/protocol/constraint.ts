import { z } from 'zod'

/**
 * The required form of a completion's text. An engine that enforces it forbids every token that would break it, so its logprobs are of
 * another distribution than the policy's.
 */
export const Constraint = z.discriminatedUnion('kind', [
  /** Any JSON object. */
  z.strictObject({ kind: z.literal('json-object') }),
  /** JSON that matches a JSON Schema; `schema` is its text as it was written. */
  z.strictObject({ kind: z.literal('json-schema'), schema: z.string() }),
  z.strictObject({ kind: z.literal('regex'), pattern: z.string().min(1) }),
  z.strictObject({ kind: z.literal('choice'), choices: z.array(z.string().min(1)).min(1) }),
  /** A context-free grammar in the EBNF that the engine reads. */
  z.strictObject({ kind: z.literal('grammar'), grammar: z.string().min(1) }),
])
export type Constraint = z.infer<typeof Constraint>
