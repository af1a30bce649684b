import { z } from 'zod'

/** The model of a policy, and how it is prompted. */
export const PolicyModel = z.strictObject({
  path: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder of the model in the form of Hugging Face. With `null`, the warm-up makes the model when training starts.'),
  warmUp: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Function that makes a starting model from nothing, such as `./warm-up.ts#warmUp`. It runs where `path` is `null`, and with `--from-scratch`.',
    ),
  history: z
    .enum(['template', 'loop', 'as-sampled'])
    .default('loop')
    .describe(
      'How earlier turns of the policy are rendered: as it sampled them while tool calls follow each other (`loop`), always as it sampled them (`as-sampled`), or always as the chat template prints them (`template`). A rewritten turn begins another conversation to train.',
    ),
  templateArguments: z
    .record(z.string().min(1), z.json())
    .default({})
    .describe('Variables for every rendering of the chat template, such as `{ enable_thinking: false }`.'),
  maxPromptBytes: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Longest prompt in bytes of rendered text. A longer one is refused before it is encoded, as too long for the context. `null` allows 16 bytes for each token of context.',
    ),
})

export type PolicyModel = z.infer<typeof PolicyModel>

/** Settings of one of several policies: those of a model, and how it is trained. */
export const PolicySettings = PolicyModel.extend({
  learningRate: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe('Learning rate of this policy at its highest, in place of `training.learningRate`, whose schedule it follows.'),
  trainable: z.boolean().default(true).describe('Whether it is trained. A policy that is not keeps its weights.'),
})
export type PolicySettings = z.infer<typeof PolicySettings>
