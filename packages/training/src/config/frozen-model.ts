import { z } from 'zod'

/** A model of a third party that agents use through the gateway: recorded as text, budgeted, never trained. */
export const FrozenModelSettings = z.strictObject({
  /** Base URL: the part before `/chat/completions`, `/responses` or `/messages`. */
  baseUrl: z.string().regex(/^https?:\/\//, 'must begin with http:// or https://'),
  dialect: z.enum(['chat-completions', 'responses', 'messages']).default('chat-completions'),
  /** The name that the third party has for the model. */
  model: z.string().min(1),
  /** Environment variable that holds the key; `null` sends none. */
  apiKeyEnv: z.string().min(1).nullable().default(null),
  headers: z.record(z.string(), z.string()).default({}),
  /** US dollars for a million tokens; with `null` the cost is unknown, and `limits.maxCost` cannot count it. */
  price: z
    .strictObject({ input: z.number().min(0), output: z.number().min(0), cachedInput: z.number().min(0).optional() })
    .nullable()
    .default(null),
  /** How often a call is repeated that the server refused because of its load. */
  retries: z.int().min(0).default(2),
  timeoutMs: z.int().min(1).default(600_000),
  maxInFlight: z.int().min(1).nullable().default(null),
  /** `record` keeps every answer in `cassette`; `replay` answers from it and sends nothing. */
  mode: z.enum(['live', 'record', 'replay']).default('live'),
  /** File of recorded answers. */
  cassette: z.string().min(1).nullable().default(null),
})
export type FrozenModelSettings = z.infer<typeof FrozenModelSettings>
