import { TrainerSettings } from '@aworld-train/training'
import { z } from 'zod'

/** Our side of a run with AReaL: the block `aworldTrain` of a configuration. */
export const ArealSettings = TrainerSettings.extend({
  rows: TrainerSettings.shape.rows.unwrap().default('last'),
  maxPromptTokens: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Longest prompt in tokens. A longer one gives no row. `null` allows what the longest response leaves of the context of the model.',
    ),
  keepCheckpoints: z
    .int()
    .min(1)
    .nullable()
    .default(2)
    .describe(
      'Newest checkpoints that stay, each with the state of the optimizer. `null` keeps all; AReaL by itself writes one over the other.',
    ),
})
export type ArealSettings = z.infer<typeof ArealSettings>
