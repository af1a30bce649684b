import { z } from 'zod'

/** A third party's model that agents use through the gateway: recorded as text, budgeted, never trained. */
export const FrozenModelSettings = z.strictObject({
  baseUrl: z
    .string()
    .regex(/^https?:\/\//, 'must begin with http:// or https://')
    .describe('Base URL of the third party: the part before `/chat/completions`, `/responses` or `/messages`.'),
  dialect: z.enum(['chat-completions', 'responses', 'messages']).default('chat-completions').describe('API that the third party speaks.'),
  model: z.string().min(1).describe('Name that the third party has for the model.'),
  exactModel: z.boolean().default(false).describe('`true` refuses an answer in which the third party names another model, or none.'),
  apiKeyEnv: z.string().min(1).nullable().default(null).describe('Environment variable that holds the key. `null` sends none.'),
  headers: z.record(z.string(), z.string()).default({}).describe('Headers that every call carries, by their names.'),
  price: z
    .strictObject({
      input: z.number().min(0).describe('US dollars for a million prompt tokens.'),
      output: z.number().min(0).describe('US dollars for a million completion tokens.'),
      cachedInput: z
        .number()
        .min(0)
        .optional()
        .describe('US dollars for a million prompt tokens that the third party had cached. Left out, they cost as much as the others.'),
    })
    .nullable()
    .default(null)
    .describe('Price of the model. With `null` its cost is unknown, and `limits.maxCost` cannot count it.'),
  retries: z.int().min(0).default(2).describe('Times that a call is repeated which the server refused because of its load.'),
  timeoutMs: z
    .int()
    .min(1)
    .default(600_000)
    .describe(
      'Time that the third party may be silent before its answer and within it, in milliseconds. A call that waits longer fails with `FROZEN_MODEL_FAILED`.',
    ),
  maxInFlight: z.int().min(1).nullable().default(null).describe('Calls of this model at once; the others wait. `null` sets no limit.'),
  mode: z
    .enum(['live', 'record', 'replay'])
    .default('live')
    .describe(
      '`live` asks the third party. `record` also keeps every answer in the cassette. `replay` answers from the cassette and asks nobody.',
    ),
  cassette: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('File of recorded answers, beside the agent. `record` and `replay` need it.'),
})
export type FrozenModelSettings = z.infer<typeof FrozenModelSettings>
